package scriptedllm

import (
	"encoding/json"
	"maps"
	"net/http"
)

// chat is the chat completions API: https://platform.openai.com/docs/api-reference/chat.
type chat struct{ openai }

type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string `json:"role"`
		Content blocks `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Type     string         `json:"type"`
		Function openaiFunction `json:"function"`
	} `json:"tools"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ResponseFormat struct {
		JSONSchema openaiFormat `json:"json_schema"`
	} `json:"response_format"`
}

func (chat) parse(_ *http.Request, body []byte) (*turn, error) {
	var q chatRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := &turn{model: q.Model, stream: q.Stream, usage: q.StreamOptions.IncludeUsage}
	t.format = q.ResponseFormat.JSONSchema.Schema
	for _, m := range q.Messages {
		switch m.Role {
		case "system", "developer":
			t.system += m.Content.String() + "\n"
		case "tool":
			t.messages = append(t.messages, message{results: []result{{text: m.Content.String()}}})
		default:
			t.messages = append(t.messages, message{model: m.Role == "assistant", texts: m.Content.texts()})
		}
	}
	for _, x := range q.Tools {
		if x.Type == "function" {
			t.tools = append(t.tools, tool{name: x.Function.Name, schema: &x.Function.Parameters})
		}
	}
	return t, t.check()
}

func (d chat) whole(re *reply) object {
	m := object{"role": "assistant", "content": nil, "refusal": nil, "annotations": []object{}}
	if re.answer.text != "" {
		m["content"] = re.answer.text
	}
	var calls []object
	for _, c := range re.answer.calls {
		calls = append(calls, d.toolCall(re, c, c.json()))
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	out := d.frame(re, "chat.completion")
	out["choices"] = []object{{"index": 0, "message": m, "logprobs": nil, "finish_reason": d.finish(re)}}
	out["usage"] = d.tokens(re)
	return out
}

func (chat) frame(re *reply, kind string) object {
	return object{
		"id": re.ids.fresh("chatcmpl-", base62, 29), "object": kind, "created": re.ids.now().Unix(),
		"model": re.turn.model, "service_tier": "default", "system_fingerprint": "fp_scripted",
	}
}

func (chat) toolCall(re *reply, c call, arguments string) object {
	return object{
		"id": re.callID(c, "call_", base62, 24), "type": "function",
		"function": object{"name": c.name, "arguments": arguments},
	}
}

func (chat) finish(re *reply) string {
	switch stop := re.stop(); stop {
	case StopTool:
		return "tool_calls"
	case StopEnd:
		return "stop"
	case StopLength:
		return "length"
	default:
		return stop
	}
}

func (chat) tokens(re *reply) object {
	return object{
		"prompt_tokens": re.inTokens, "completion_tokens": re.outTokens(), "total_tokens": re.inTokens + re.outTokens(),
		"prompt_tokens_details":     object{"cached_tokens": 0, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": 0, "audio_tokens": 0},
	}
}

func (d chat) stream(re *reply, s *sink) {
	s.begin("text/event-stream; charset=utf-8")
	frame := d.frame(re, "chat.completion.chunk")
	if re.turn.usage {
		frame["usage"] = nil // every chunk has the key once usage is asked for; the last one alone a value
	}
	send := func(delta object, finish any) {
		chunk := maps.Clone(frame)
		chunk["choices"] = []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		s.data(chunk)
	}
	d.deltas(re, func(delta object) { send(delta, nil) })
	send(object{}, d.finish(re))
	if re.turn.usage {
		chunk := maps.Clone(frame)
		chunk["choices"], chunk["usage"] = []object{}, d.tokens(re)
		s.data(chunk)
	}
	s.send("data: [DONE]\n\n")
}

// deltas sends the role, the text and the tool calls in pieces.
func (d chat) deltas(re *reply, send func(object)) {
	send(object{"role": "assistant", "content": "", "refusal": nil})
	if re.answer.text != "" {
		for piece := range re.textPieces() {
			send(object{"content": piece})
		}
	}
	for i, c := range re.answer.calls {
		first := d.toolCall(re, c, "")
		first["index"] = i
		send(object{"tool_calls": []object{first}})
		for _, piece := range re.pieces(c.json()) {
			send(object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}})
		}
	}
}
