package scriptedllm

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// responses is the responses API: https://platform.openai.com/docs/api-reference/responses and .../responses-streaming.
type responses struct{ openai }

type responsesRequest struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Instructions string          `json:"instructions"`
	Input        input           `json:"input"`
	Tools        []responsesTool `json:"tools"`
	Text         struct {
		Format openaiFormat `json:"format"`
	} `json:"text"`
}

// A responsesTool is a function, or a namespace of several.
type responsesTool struct {
	Type string `json:"type"`
	openaiFunction
	Tools []responsesTool `json:"tools"`
}

// input is a text, which is a user's message, or a list of items.
type input []struct {
	Type    string `json:"type"` // "" is a message
	Role    string `json:"role"`
	Content blocks `json:"content"`
	Output  blocks `json:"output"` // of a function_call_output
}

// UnmarshalJSON takes both forms.
func (in *input) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		data = []byte(`[{"role":"user","content":` + string(data) + `}]`)
	}
	type plain input // without this method
	return json.Unmarshal(data, (*plain)(in))
}

func (responses) parse(_ *http.Request, body []byte) (*turn, error) {
	var q responsesRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := &turn{model: q.Model, stream: q.Stream, system: q.Instructions, format: q.Text.Format.Schema}
	for _, x := range q.Input {
		switch {
		case x.Type == "function_call_output" || x.Type == "custom_tool_call_output":
			t.messages = append(t.messages, message{results: []result{{text: x.Output.String()}}})
		case x.Type != "" && x.Type != "message":
			t.messages = append(t.messages, message{model: true}) // a call, reasoning: the model's own items
		case x.Role == "system" || x.Role == "developer":
			t.system += "\n" + x.Content.String()
		default:
			t.messages = append(t.messages, message{model: x.Role == "assistant", texts: x.Content.texts()})
		}
	}
	t.tools = functions(nil, q.Tools, "")
	return t, t.check()
}

// functions appends the functions among declared, which stand in a namespace, and those of the namespaces there.
func functions(to []tool, declared []responsesTool, space string) []tool {
	for i := range declared {
		switch x := &declared[i]; {
		case x.Type == "function":
			to = append(to, tool{name: x.Name, schema: &x.Parameters, space: space})
		case x.Type == "namespace" && space == "":
			to = functions(to, x.Tools, x.Name)
		}
	}
	return to
}

func (d responses) whole(re *reply) object {
	out := d.response(re)
	d.complete(re, out, d.items(re))
	return out
}

// response is a response that has only begun.
func (responses) response(re *reply) object {
	return object{
		"id": re.ids.fresh("resp_", hexits, 48), "object": "response", "created_at": re.ids.now().Unix(),
		"status": "in_progress", "background": false, "error": nil, "incomplete_details": nil, "instructions": nil,
		"max_output_tokens": nil, "model": re.turn.model, "output": []object{}, "parallel_tool_calls": true,
		"previous_response_id": nil, "reasoning": object{"effort": nil, "summary": nil}, "service_tier": "default",
		"store": false, "temperature": 1.0, "text": object{"format": object{"type": "text"}}, "tool_choice": "auto",
		"tools": []object{}, "top_p": 1.0, "truncation": "disabled", "usage": nil, "user": nil, "metadata": object{},
	}
}

func (responses) complete(re *reply, response object, items []object) {
	response["status"] = "completed"
	if re.stop() == StopLength {
		response["status"], response["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	response["output"] = items
	response["usage"] = object{
		"input_tokens": re.inTokens, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": re.outTokens(), "output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens": re.inTokens + re.outTokens(),
	}
}

// items returns the finished output: a message, function calls, or both.
func (responses) items(re *reply) []object {
	var out []object
	if re.answer.text != "" {
		out = append(out, object{
			"id": re.ids.fresh("msg_", hexits, 48), "type": "message", "status": "completed", "role": "assistant",
			"content": []object{textPart(re.answer.text)},
		})
	}
	for _, c := range re.answer.calls {
		item := object{
			"id": re.ids.fresh("fc_", hexits, 48), "type": "function_call", "status": "completed",
			"call_id": re.callID(c, "call_", base62, 24), "name": c.name, "arguments": c.json(),
		}
		if c.space != "" {
			item["namespace"] = c.space
		}
		out = append(out, item)
	}
	return out
}

func textPart(text string) object {
	return object{"type": "output_text", "annotations": []object{}, "logprobs": []object{}, "text": text}
}
