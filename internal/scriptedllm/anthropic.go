package scriptedllm

import (
	"encoding/json"
	"iter"
	"net/http"
	"slices"
)

// anthropic is the messages API: https://docs.anthropic.com/en/api/messages and .../messages-streaming.
type anthropic struct{}

func (anthropic) provider() string { return "anthropic" }

func (anthropic) key(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	return bearer(r)
}

func (anthropic) header(h http.Header, ids *ids) {
	h.Set("Request-Id", ids.fresh("req_011C", base62, 20))
}

type anthropicRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	System   blocks `json:"system"`
	Messages []struct {
		Role    string `json:"role"`
		Content blocks `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string `json:"name"`
		InputSchema schema `json:"input_schema"`
	} `json:"tools"`
	Thinking struct {
		Type string `json:"type"` // "enabled", "adaptive" or "disabled"
	} `json:"thinking"`
	OutputConfig struct {
		Format struct {
			Schema *schema `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
}

func (anthropic) parse(_ *http.Request, body []byte) (*turn, error) {
	var q anthropicRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := &turn{model: q.Model, stream: q.Stream, system: q.System.String(), format: q.OutputConfig.Format.Schema}
	t.think = q.Thinking.Type == "enabled" || q.Thinking.Type == "adaptive"
	for _, m := range q.Messages {
		out := message{model: m.Role == "assistant"}
		for _, b := range m.Content {
			switch {
			case b.Type == "tool_result":
				out.results = append(out.results, result{text: b.Content.String(), failed: b.IsError})
			case b.Text != "":
				out.texts = append(out.texts, b.Text)
			}
		}
		t.messages = append(t.messages, out)
	}
	for _, x := range q.Tools {
		t.tools = append(t.tools, tool{name: x.Name, schema: &x.InputSchema})
	}
	return t, t.check()
}

func (d anthropic) whole(re *reply) object {
	content := []object{}
	if re.answer.thought != "" {
		content = append(content, object{
			"type": "thinking", "thinking": re.answer.thought, "signature": re.ids.fresh("Ep", base62, 60) + "==",
		})
	}
	if re.answer.text != "" {
		content = append(content, object{"type": "text", "text": re.answer.text})
	}
	for _, c := range re.answer.calls {
		content = append(content, d.toolUse(re, c, c.args))
	}
	m := d.message(re, content)
	m["stop_reason"] = d.stopReason(re)
	m["usage"] = d.usage(re, re.outTokens())
	return m
}

func (anthropic) message(re *reply, content []object) object {
	return object{
		"id": re.ids.fresh("msg_01", base62, 22), "type": "message", "role": "assistant", "model": re.turn.model,
		"content": content, "stop_reason": nil, "stop_sequence": nil,
	}
}

func (anthropic) toolUse(re *reply, c call, input any) object {
	return object{"type": "tool_use", "id": re.callID(c, "toolu_01", base62, 22), "name": c.name, "input": input}
}

func (anthropic) stopReason(re *reply) string { return re.stop() }

func (anthropic) usage(re *reply, out int) object {
	return object{
		"input_tokens": re.inTokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": out,
		"service_tier": "standard",
	}
}

func (d anthropic) stream(re *reply, s *sink) {
	s.w.Header().Set("Cache-Control", "no-cache")
	s.begin("text/event-stream; charset=utf-8")
	d.events(re, s.event)
}

// events gives the events of a stream, each with its type, to emit.
func (d anthropic) events(re *reply, emit func(kind string, o any)) {
	send := func(kind string, o object) {
		o["type"] = kind
		emit(kind, o)
	}
	m := d.message(re, []object{})
	m["usage"] = d.usage(re, 1)
	send("message_start", object{"message": m})
	d.blocks(re, send)
	send("message_delta", object{
		"delta": object{"stop_reason": d.stopReason(re), "stop_sequence": nil},
		"usage": object{"output_tokens": re.outTokens()},
	})
	send("message_stop", object{})
}

// blocks sends the thought, the text and the tool calls, each as one content block. The ping follows the first block's start, as it
// does at the provider.
func (d anthropic) blocks(re *reply, send func(string, object)) {
	index := 0
	block := func(start object, deltaType, field string, deltas iter.Seq[string], more ...object) {
		send("content_block_start", object{"index": index, "content_block": start})
		if index == 0 {
			send("ping", object{})
		}
		for piece := range deltas {
			send("content_block_delta", object{"index": index, "delta": object{"type": deltaType, field: piece}})
		}
		for _, delta := range more {
			send("content_block_delta", object{"index": index, "delta": delta})
		}
		send("content_block_stop", object{"index": index})
		index++
	}
	if thought := re.answer.thought; thought != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking", slices.Values(re.pieces(thought)),
			object{"type": "signature_delta", "signature": re.ids.fresh("Ep", base62, 60) + "=="})
	}
	if text := re.answer.text; text != "" {
		block(object{"type": "text", "text": ""}, "text_delta", "text", re.textPieces())
	}
	for _, c := range re.answer.calls {
		block(d.toolUse(re, c, object{}), "input_json_delta", "partial_json", slices.Values(append([]string{""}, re.pieces(c.json())...)))
	}
}

func (anthropic) failure(status int, message string) object {
	kinds := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error",
	}
	kind, ok := kinds[status]
	switch {
	case ok:
	case status >= http.StatusInternalServerError:
		kind = "api_error"
	default:
		kind = "invalid_request_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": message}}
}
