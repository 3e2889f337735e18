package scriptedllm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// gemini is generateContent and streamGenerateContent: https://ai.google.dev/api/generate-content.
type gemini struct{}

func (gemini) provider() string { return "gemini" }

func (gemini) key(r *http.Request) string {
	if key := r.Header.Get("X-Goog-Api-Key"); key != "" {
		return key
	}
	return r.URL.Query().Get("key")
}

func (gemini) header(h http.Header, _ *ids) {
	h.Set("Server", "scaffolding on HTTPServer2")
	h.Add("Vary", "Origin")
	h.Add("Vary", "X-Origin")
	h.Add("Vary", "Referer")
}

type geminiRequest struct {
	Contents []struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	} `json:"contents"`
	SystemInstruction struct {
		Parts []geminiPart `json:"parts"`
	} `json:"systemInstruction"`
	Tools []struct {
		FunctionDeclarations []struct {
			Name                 string  `json:"name"`
			Parameters           *schema `json:"parameters"`
			ParametersJSONSchema *schema `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	GenerationConfig struct {
		ResponseSchema     *schema `json:"responseSchema"`
		ResponseJSONSchema *schema `json:"responseJsonSchema"`
		ThinkingConfig     struct {
			IncludeThoughts bool `json:"includeThoughts"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiPart struct {
	Text             string `json:"text"`
	FunctionResponse *struct {
		Response map[string]any `json:"response"` // by convention "output" or "error"
	} `json:"functionResponse"`
}

// geminiCall is the model and the method of a path.
func geminiCall(r *http.Request) (model, method string) {
	model, method, _ = strings.Cut(r.PathValue("call"), ":")
	return model, method
}

func (d gemini) parse(r *http.Request, body []byte) (*turn, error) {
	t := &turn{}
	var method string
	t.model, method = geminiCall(r)
	if method != "generateContent" && method != "streamGenerateContent" {
		return nil, fmt.Errorf("method %q is not supported for model %q", method, t.model)
	}
	t.stream = method == "streamGenerateContent"
	t.array = t.stream && r.URL.Query().Get("alt") != "sse"
	var q geminiRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t.format = firstSchema(q.GenerationConfig.ResponseJSONSchema, q.GenerationConfig.ResponseSchema)
	t.think = q.GenerationConfig.ThinkingConfig.IncludeThoughts
	t.system = d.message(q.SystemInstruction.Parts, false).joined()
	for _, c := range q.Contents {
		t.messages = append(t.messages, d.message(c.Parts, c.Role == "model"))
	}
	for _, x := range q.Tools {
		for _, f := range x.FunctionDeclarations {
			t.tools = append(t.tools, tool{name: f.Name, schema: firstSchema(f.ParametersJSONSchema, f.Parameters, &schema{})})
		}
	}
	return t, t.check()
}

// firstSchema returns the first that is there.
func firstSchema(list ...*schema) *schema {
	for _, s := range list {
		if s != nil {
			return s
		}
	}
	return nil
}

func (gemini) message(parts []geminiPart, model bool) message {
	m := message{model: model}
	for _, p := range parts {
		switch {
		case p.FunctionResponse != nil:
			m.results = append(m.results, geminiResult(p.FunctionResponse.Response))
		case p.Text != "":
			m.texts = append(m.texts, p.Text)
		}
	}
	return m
}

func geminiResult(response map[string]any) result {
	if text, ok := response["error"].(string); ok {
		return result{text: text, failed: true}
	}
	if text, ok := response["output"].(string); ok {
		return result{text: text}
	}
	return result{text: string(encode(response))}
}

func (d gemini) whole(re *reply) object {
	return d.chunk(re, re.ids.fresh("", base62, 22), d.parts(re, func(text string) []string { return []string{text} }), true)
}

// parts are the thoughts, the texts, as cut makes pieces of both, and then the calls, each one part.
func (gemini) parts(re *reply, cut func(string) []string) []object {
	var out []object
	for _, thought := range cut(re.answer.thought) {
		if thought != "" {
			out = append(out, object{"text": thought, "thought": true})
		}
	}
	for _, text := range cut(re.answer.text) {
		if text != "" {
			out = append(out, object{"text": text})
		}
	}
	for _, c := range re.answer.calls {
		out = append(out, object{"functionCall": object{
			"id": re.ids.fresh("", base62, 16), "name": c.name, "args": c.args,
		}})
	}
	return out
}

// chunk is one GenerateContentResponse. The last one has the reason why the model stopped, STOP after a call as well.
func (gemini) chunk(re *reply, id string, parts []object, last bool) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	usage := object{
		"promptTokenCount": re.inTokens, "totalTokenCount": re.inTokens,
		"promptTokensDetails": []object{{"modality": "TEXT", "tokenCount": re.inTokens}},
	}
	if last {
		candidate["finishReason"] = "STOP"
		usage["candidatesTokenCount"] = re.outTokens()
		usage["totalTokenCount"] = re.inTokens + re.outTokens()
	}
	return object{
		"candidates": []object{candidate}, "usageMetadata": usage, "modelVersion": re.turn.model, "responseId": id,
	}
}

// stream sends a part a chunk: a call is never cut into pieces.
func (d gemini) stream(re *reply, s *sink) {
	if re.turn.array {
		s.begin("application/json; charset=UTF-8")
	} else {
		s.begin("text/event-stream")
	}
	id := re.ids.fresh("", base62, 22)
	parts := d.parts(re, re.pieces)
	for i, part := range parts {
		last := i == len(parts)-1
		d.send(s, re.turn.array, string(encode(d.chunk(re, id, []object{part}, last))), i == 0, last)
	}
}

// send puts one chunk on the wire: as an event, which ends in CR LF here, or as an element of an array that is open
// until the last.
func (gemini) send(s *sink, array bool, chunk string, first, last bool) {
	switch {
	case !array:
		s.send("data: " + chunk + "\r\n\r\n")
	case first && last:
		s.send("[" + chunk + "]\n")
	case first:
		s.send("[" + chunk)
	case last:
		s.send("\n,\r\n" + chunk + "\n]\n")
	default:
		s.send("\n,\r\n" + chunk)
	}
}

func (gemini) failure(status int, message string) object {
	return object{"error": object{"code": status, "message": message, "status": geminiStatus(status)}}
}

func geminiStatus(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case status == http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case status >= http.StatusInternalServerError:
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}
