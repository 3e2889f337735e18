package scriptedllm

import (
	"encoding/json"
	"net/http"
	"strings"
)

// bedrock is what the operations of Amazon's Bedrock runtime share:
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_Operations_Amazon_Bedrock_Runtime.html.
type bedrock struct{}

func (bedrock) provider() string { return "bedrock" }

func (bedrock) key(r *http.Request) string { return bearer(r) }

func (bedrock) header(h http.Header, ids *ids) {
	h.Set("X-Amzn-Requestid", ids.fresh("", hexits, 32))
}

func (bedrock) failure(status int, message string) object {
	kind := "ValidationException"
	switch {
	case status == http.StatusUnauthorized:
		kind = "AccessDeniedException"
	case status == http.StatusTooManyRequests:
		kind = "ThrottlingException"
	case status >= http.StatusInternalServerError:
		kind = "InternalServerException"
	}
	return object{"__type": kind, "message": message}
}

// converse is Converse and ConverseStream, one format for every model.
type converse struct{ bedrock }

// A converseBlock is one block of content; the member that is there says its kind.
type converseBlock struct {
	Text       string `json:"text"`
	ToolResult *struct {
		Status  string `json:"status"`
		Content []struct {
			Text string          `json:"text"`
			JSON json.RawMessage `json:"json"`
		} `json:"content"`
	} `json:"toolResult"`
}

type converseRequest struct {
	System   []converseBlock `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content []converseBlock `json:"content"`
	} `json:"messages"`
	ToolConfig struct {
		Tools []struct {
			ToolSpec struct {
				Name        string `json:"name"`
				InputSchema struct {
					JSON schema `json:"json"`
				} `json:"inputSchema"`
			} `json:"toolSpec"`
		} `json:"tools"`
	} `json:"toolConfig"`
}

func (converse) parse(r *http.Request, body []byte) (*turn, error) {
	var q converseRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := &turn{model: r.PathValue("model"), stream: strings.HasSuffix(r.URL.Path, "/converse-stream")}
	for _, b := range q.System {
		t.system += b.Text + "\n"
	}
	for _, m := range q.Messages {
		out := message{model: m.Role == "assistant"}
		for _, b := range m.Content {
			if b.ToolResult != nil {
				out.results = append(out.results, b.result())
			} else if b.Text != "" {
				out.texts = append(out.texts, b.Text)
			}
		}
		t.messages = append(t.messages, out)
	}
	for _, x := range q.ToolConfig.Tools {
		t.tools = append(t.tools, tool{name: x.ToolSpec.Name, schema: &x.ToolSpec.InputSchema.JSON})
	}
	return t, t.check()
}

func (b converseBlock) result() result {
	out := result{failed: b.ToolResult.Status == "error"}
	for _, c := range b.ToolResult.Content {
		out.text += c.Text + string(c.JSON)
	}
	return out
}

func (d converse) whole(re *reply) object {
	content := []object{}
	if re.answer.text != "" {
		content = append(content, object{"text": re.answer.text})
	}
	for _, c := range re.answer.calls {
		content = append(content, object{"toolUse": object{
			"toolUseId": re.callID(c, "tooluse_", base62, 22), "name": c.name, "input": c.args,
		}})
	}
	return object{
		"output":     object{"message": object{"role": "assistant", "content": content}},
		"stopReason": anthropic{}.stopReason(re), "usage": d.usage(re), "metrics": object{"latencyMs": 551},
	}
}

func (converse) usage(re *reply) object {
	return object{
		"inputTokens": re.inTokens, "outputTokens": re.outTokens(), "totalTokens": re.inTokens + re.outTokens(),
	}
}

// invoke is InvokeModel and InvokeModelWithResponseStream with one of Anthropic's models: its own format, less the model
// and the wish for a stream, which stand in the path.
type invoke struct{ bedrock }

func (invoke) parse(r *http.Request, body []byte) (*turn, error) {
	t, err := anthropic{}.parse(r, withModel(body, r.PathValue("model")))
	if err == nil {
		t.stream = strings.HasSuffix(r.URL.Path, "/invoke-with-response-stream")
	}
	return t, err
}

func (invoke) whole(re *reply) object { return anthropic{}.whole(re) }
