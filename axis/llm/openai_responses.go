package llm

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// OpenAIResponses is the Responses API: POST …/responses.
//
//	surface: input, instructions, tools, tool_choice, reasoning, previous_response_id, conversation, prompt
//	ignored: client_metadata, metadata, prompt_cache_key, prompt_cache_retention, safety_identifier, store, user
//
// A conversation that the server keeps (previous_response_id) sends only what is new, so each of its requests opens a
// lane of its own.
type OpenAIResponses struct{}

var openAIResponsesKeys = keys{
	surface: []string{
		"instructions", "tools", "tool_choice", "reasoning", "previous_response_id", "conversation", "prompt",
	},
	ignored: openAIIgnored,
}

// Name implements Provider.
func (OpenAIResponses) Name() string { return "openai" }

// Endpoint implements Provider: "responses".
func (OpenAIResponses) Endpoint(path string) (endpoint, model string, ok bool) {
	return "responses", "", strings.HasSuffix(path, "/responses")
}

// Read implements Provider. A body without input and prompt is not of its shape.
func (OpenAIResponses) Read(body canonjson.Value) (Call, bool) {
	input, ok := body.Get("input")
	if !ok {
		if _, ok = body.Get("prompt"); !ok {
			return Call{}, false
		}
		input = array()
	}
	if input.Kind == canonjson.String {
		input = array(object(
			canonjson.Member{Key: "role", Value: text("user")},
			canonjson.Member{Key: "content", Value: input},
		))
	}
	if input.Kind != canonjson.Array {
		return Call{}, false
	}
	input = each(input, responsesItem)
	c := Call{
		Model:          member(body, "model"),
		Messages:       canonjson.Member{Key: "input", Value: input},
		SystemKey:      "instructions",
		SystemMessages: withRole(input, "system", "developer"),
		User:           firstRole(input, "user"),
	}
	c.Surface, c.Params = openAIResponsesKeys.split(body, "input", "model")
	return c, true
}

// responsesItem takes the provider's own ids and sealed reasoning off an item; call_id pairs a call with its result and
// stays. An item with a role and no type is a message.
func responsesItem(item canonjson.Value) canonjson.Value {
	if member(item, "type") == "item_reference" {
		return item // its id is all that it has
	}
	item = without(item, "id", "status", "encrypted_content")
	role := member(item, "role")
	if role == "" {
		return item
	}
	if _, typed := item.Get("type"); !typed {
		item.Members = append(item.Members[:len(item.Members):len(item.Members)],
			canonjson.Member{Key: "type", Value: text("message")})
	}
	kind := "input_text"
	if role == "assistant" {
		kind = "output_text"
	}
	return with(item, "content", func(content canonjson.Value) canonjson.Value {
		return blocks(content, kind, responsesPart)
	})
}

// responsesPart takes off what the API adds to each part of an answer and clients echo or drop as they like.
func responsesPart(part canonjson.Value) canonjson.Value {
	return without(part, "annotations", "logprobs")
}

// Usage implements Provider. A stream ends with an event that holds the whole response.
func (OpenAIResponses) Usage(answer []byte) []byte {
	if head := bytes.TrimLeft(answer, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		return objectAt(head, "usage")
	}
	return lastObject(answer, "response", "usage")
}

// ErrorBody implements Provider.
func (OpenAIResponses) ErrorBody(status int, message string) []byte {
	return openAIError(status, message)
}
