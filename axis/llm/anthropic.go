package llm

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Anthropic is the Messages API: POST …/v1/messages. Token counts and batches are plain HTTP.
//
//	surface: messages, system, tools, tool_choice, thinking
//	ignored: metadata (user_id), cache_control
type Anthropic struct{}

var anthropicKeys = keys{
	surface: []string{"system", "tools", "tool_choice", "thinking"},
	ignored: []string{"metadata", "cache_control"},
}

// claudeBilling begins the system block in which Claude Code counts its own requests.
const claudeBilling = "x-anthropic-billing-header"

// Name implements Provider.
func (Anthropic) Name() string { return "anthropic" }

// Endpoint implements Provider: "messages".
func (Anthropic) Endpoint(path string) (endpoint, model string, ok bool) {
	return "messages", "", strings.HasSuffix(path, "/v1/messages")
}

// Read implements Provider. A body without a model or without a list of messages is not of its shape.
func (Anthropic) Read(body canonjson.Value) (Call, bool) {
	messages, ok := list(body, "messages")
	model := member(body, "model")
	if !ok || model == "" {
		return Call{}, false
	}
	messages = each(messages, func(m canonjson.Value) canonjson.Value { return with(m, "content", anthropicBlocks) })
	body = with(with(body, "system", anthropicSystem), "tools", func(tools canonjson.Value) canonjson.Value {
		return each(tools, func(t canonjson.Value) canonjson.Value { return without(t, "cache_control") })
	})
	c := Call{
		Model:     model,
		Messages:  canonjson.Member{Key: "messages", Value: messages},
		SystemKey: "system",
		User:      firstRole(messages, "user"),
	}
	c.Surface, c.Params = anthropicKeys.split(body, "messages", "model")
	return c, true
}

func anthropicBlocks(content canonjson.Value) canonjson.Value {
	return blocks(content, "text", anthropicBlock)
}

// anthropicBlock takes the marks and the opaque echoes off a block of content. The input of a tool is content.
func anthropicBlock(b canonjson.Value) canonjson.Value {
	b = without(b, "cache_control", "signature", "encrypted_content")
	switch kind := member(b, "type"); {
	case kind == "redacted_thinking":
		b = without(b, "data")
	case strings.HasSuffix(kind, "tool_result"):
		b = with(b, "content", anthropicBlocks)
	}
	return b
}

// anthropicSystem takes the billing line out of the system text.
func anthropicSystem(system canonjson.Value) canonjson.Value {
	system = anthropicBlocks(system)
	kept := system.Elems[:0:0]
	for _, b := range system.Elems {
		if !strings.HasPrefix(member(b, "text"), claudeBilling) {
			kept = append(kept, b)
		}
	}
	system.Elems = kept
	return system
}

// Usage implements Provider. A streamed answer counts its input in message_start and its output in message_delta: both
// are merged, the later value wins.
func (Anthropic) Usage(answer []byte) []byte {
	if head := bytes.TrimLeft(answer, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		return objectAt(head, "usage")
	}
	start := lastObject(answer, "message", "usage")
	delta := lastObject(answer, "usage")
	if start == nil || delta == nil {
		return append(start, delta...) // at most one of them
	}
	return mergeObjects(start, delta)
}

// ErrorBody implements Provider.
func (Anthropic) ErrorBody(status int, message string) []byte {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return marshal(struct {
		Type  string `json:"type"`
		Error detail `json:"error"`
	}{"error", detail{anthropicErrorType(status), message}})
}

// anthropicErrorType is the error type that the API documents for a status.
func anthropicErrorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
