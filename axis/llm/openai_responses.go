package llm

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A conversation that the server keeps (previous_response_id) sends only what is new, so each of its requests opens a
// lane of its own.
var responsesKeys = &keys{
	messages: "input",
	surface: []string{
		"instructions", "tools", "tool_choice", "reasoning", "previous_response_id", "conversation", "prompt",
	},
	ignored: openAIIgnored,
	omitted: []exempt{
		{"id, status, encrypted_content of items", "given by the provider; clients echo or drop them as they like"},
		{"annotations, logprobs of parts", "the same"},
		{"call_id of a call and of its result", "numbered by first appearance: the pairing counts, the name does not"},
		{"a bare string as input or content", "read as the list of one message or part that it is short for"},
		{"an item with a role and no type", "read as a message"},
	},
}

// readResponses takes a body apart that has input or a prompt of the dashboard, or goes on with a kept conversation.
func readResponses(body *canonjson.Value, k *keys) (call, bool) {
	input := get(body, "input")
	if input == nil {
		if get(body, "prompt") == nil && get(body, "previous_response_id") == nil {
			return call{}, false
		}
		none := array()
		input = &none
	}
	if input.Kind == canonjson.String {
		*input = array(object(
			canonjson.Member{Key: "role", Value: text("user")},
			canonjson.Member{Key: "content", Value: *input},
		))
	}
	if input.Kind != canonjson.Array {
		return call{}, false
	}
	var ids pairs
	each(input, func(item *canonjson.Value) { responsesItem(item, &ids) })
	c := call{
		model:          member(body, "model"),
		messages:       canonjson.Member{Key: "input", Value: *input},
		systemKey:      "instructions",
		systemMessages: withRole(input, "system", "developer"),
		user:           firstRole(input, "user"),
	}
	c.surface, c.params = k.split(body, "input", "model")
	return c, true
}

// responsesItem takes the provider's own ids and sealed reasoning off an item.
func responsesItem(item *canonjson.Value, ids *pairs) {
	if item.Kind != canonjson.Object || member(item, "type") == "item_reference" {
		return // the id of a reference is all that it has
	}
	drop(item, "id", "status", "encrypted_content")
	ids.number(item, "call_id")
	role := member(item, "role")
	if role == "" {
		return
	}
	if get(item, "type") == nil {
		item.Members = append(item.Members, canonjson.Member{Key: "type", Value: text("message")})
	}
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	at(item, "content", func(content *canonjson.Value) {
		listed(content, kind)
		each(content, func(part *canonjson.Value) { drop(part, "annotations", "logprobs") })
	})
}

// responsesUsage finds the usage of an answer. A stream ends with an event that holds the whole response.
func responsesUsage(answer []byte) []byte {
	if head := bytes.TrimLeft(answer, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		return objectAt(head, "usage")
	}
	return lastObject(answer, []string{"response", "usage"})
}
