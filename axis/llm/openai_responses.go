package llm

import (
	"bytes"
	"slices"

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

// responsesSocketKeys are those of a turn over a WebSocket: previous_response_id counts where the answer that it names did not
// pass on the same one.
var responsesSocketKeys = &keys{
	messages: responsesKeys.messages,
	surface:  responsesKeys.surface,
	ignored: ignoring(openAIIgnored,
		exempt{"stream", "every turn over a WebSocket is a stream"},
		exempt{foldedKey, "Tapedeck's own: what of the request was sent"},
	),
	omitted: append([]exempt{
		{"turn_id, create_time of internal_chat_message_metadata_passthrough", "Codex says of an item when it was made"},
		{"input that goes on from an answer of the same socket", "read as the whole conversation, whose last items were sent"},
	}, responsesKeys.omitted...),
}

// responsesWarmUp is the endpoint of a turn in which nothing is generated: it has an id that the next one goes on from.
const responsesWarmUp = "responses.ws.warmup"

// responsesWarmUpKeys are those of such a turn. Its tools do not count: an agent warms up beside the start of its tool servers, and
// declares those that are ready by then. The next turn has them all.
var responsesWarmUpKeys = &keys{
	messages: responsesSocketKeys.messages,
	surface:  slices.DeleteFunc(slices.Clone(responsesSocketKeys.surface), func(key string) bool { return key == "tools" }),
	ignored: ignoring(responsesSocketKeys.ignored,
		exempt{"tools", "those of the tool servers that are ready by then; the next turn declares all"}),
	omitted: responsesSocketKeys.omitted,
}

// readWarmUp takes a body apart that asks for no answer.
func readWarmUp(body *canonjson.Value, k *keys) (call, bool) {
	generate := get(body, "generate")
	if generate == nil || generate.Kind != canonjson.Bool || generate.Bool {
		return call{}, false
	}
	return readResponsesSocket(body, k)
}

// readResponsesSocket takes the request of a turn over a WebSocket apart.
func readResponsesSocket(body *canonjson.Value, k *keys) (call, bool) {
	at(body, "input", func(input *canonjson.Value) {
		each(input, func(item *canonjson.Value) {
			at(item, "internal_chat_message_metadata_passthrough", func(v *canonjson.Value) { drop(v, "turn_id", "create_time") })
		})
	})
	return readResponses(body, k)
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

// responsesSocketUsage finds the usage in the messages of an answer.
func responsesSocketUsage(answer []byte) []byte {
	return lastObject(answer, []string{"response", "usage"})
}

// responsesUsage finds the usage of an answer. A stream ends with an event that holds the whole response.
func responsesUsage(answer []byte) []byte {
	if head := bytes.TrimLeft(answer, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		return objectAt(head, "usage")
	}
	return lastObject(answer, []string{"response", "usage"})
}
