package scriptedllm

import (
	"encoding/json"
	"net/http"
	"time"
)

// ollama is POST /api/chat: https://github.com/ollama/ollama/blob/main/docs/api.md. A stream is one JSON object a line.
type ollama struct{}

func (ollama) provider() string { return "ollama" }

func (ollama) key(r *http.Request) string { return bearer(r) }

func (ollama) header(http.Header, *ids) {}

type ollamaRequest struct {
	Model    string `json:"model"`
	Stream   *bool  `json:"stream"` // absent: true
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function openaiFunction `json:"function"`
	} `json:"tools"`
	Format json.RawMessage `json:"format"` // "json", or a schema
	Think  any             `json:"think"`  // true, or how much
}

func (ollama) parse(_ *http.Request, body []byte) (*turn, error) {
	var q ollamaRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := &turn{model: q.Model, stream: q.Stream == nil || *q.Stream, think: q.Think != nil && q.Think != false}
	if len(q.Format) > 0 && q.Format[0] == '{' {
		t.format = new(schema)
		if err := json.Unmarshal(q.Format, t.format); err != nil {
			return nil, err
		}
	}
	for _, m := range q.Messages {
		switch m.Role {
		case "system":
			t.system += m.Content + "\n"
		case "tool":
			t.messages = append(t.messages, message{results: []result{{text: m.Content}}})
		default:
			out := message{model: m.Role == "assistant"}
			if m.Content != "" {
				out.texts = []string{m.Content}
			}
			t.messages = append(t.messages, out)
		}
	}
	for _, x := range q.Tools {
		t.tools = append(t.tools, tool{name: x.Function.Name, schema: &x.Function.Parameters})
	}
	return t, t.check()
}

func (d ollama) whole(re *reply) object {
	return d.last(re, d.message(re.answer.text, re.answer.thought, re.answer.calls))
}

// message is what the assistant says in one line; a key without a value is left out, as the server does.
func (ollama) message(text, thought string, calls []call) object {
	m := object{"role": "assistant", "content": text}
	if thought != "" {
		m["thinking"] = thought
	}
	var list []object
	for i, c := range calls {
		list = append(list, object{"function": object{"index": i, "name": c.name, "arguments": c.args}})
	}
	if list != nil {
		m["tool_calls"] = list
	}
	return m
}

func (ollama) line(re *reply, message object) object {
	return object{
		"model": re.turn.model, "created_at": re.ids.now().UTC().Format(time.RFC3339Nano), "message": message, "done": false,
	}
}

func (d ollama) last(re *reply, message object) object {
	o := d.line(re, message)
	o["done"], o["done_reason"] = true, ollamaStop(re.stop())
	o["total_duration"], o["load_duration"] = 4_883_583_458, 1_334_875 // ns
	o["prompt_eval_count"], o["prompt_eval_duration"] = re.inTokens, 342_546_000
	o["eval_count"], o["eval_duration"] = re.outTokens(), 4_535_599_000
	return o
}

// ollamaStop is why the model stopped in Ollama's words.
func ollamaStop(stop string) string {
	switch stop {
	case StopEnd, StopTool:
		return "stop"
	case StopLength:
		return "length"
	}
	return stop
}

func (d ollama) stream(re *reply, s *sink) {
	s.begin("application/x-ndjson")
	send := func(o object) { s.send(string(encode(o)) + "\n") }
	for _, piece := range re.pieces(re.answer.thought) {
		if piece != "" {
			send(d.line(re, d.message("", piece, nil)))
		}
	}
	for piece := range re.textPieces() {
		send(d.line(re, d.message(piece, "", nil)))
	}
	for _, c := range re.answer.calls { // a call comes whole
		send(d.line(re, d.message("", "", []call{c})))
	}
	send(d.last(re, d.message("", "", nil)))
}

func (ollama) failure(_ int, message string) object { return object{"error": message} }
