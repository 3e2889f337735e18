package llm

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// OpenAIChat is the Chat Completions API: POST …/chat/completions, which most other servers speak too.
//
//	surface: messages, tools, tool_choice, functions, function_call, reasoning, reasoning_effort, thinking
//	ignored: client_metadata, metadata, prompt_cache_key, prompt_cache_retention, safety_identifier, store, user
type OpenAIChat struct{}

var openAIChatKeys = keys{
	surface: []string{
		"tools", "tool_choice", "functions", "function_call", "reasoning", "reasoning_effort", "thinking",
	},
	ignored: openAIIgnored,
}

// Name implements Provider.
func (OpenAIChat) Name() string { return "openai" }

// Endpoint implements Provider: "chat.completions".
func (OpenAIChat) Endpoint(path string) (endpoint, model string, ok bool) {
	return "chat.completions", "", strings.HasSuffix(path, "/chat/completions")
}

// Read implements Provider. A body without a list of messages is not of its shape; Azure names the model in the path only.
func (OpenAIChat) Read(body canonjson.Value) (Call, bool) {
	messages, ok := list(body, "messages")
	if !ok {
		return Call{}, false
	}
	messages = each(messages, func(m canonjson.Value) canonjson.Value {
		return with(m, "content", func(content canonjson.Value) canonjson.Value {
			return blocks(content, "text", openAIPart)
		})
	})
	body = with(body, "tools", func(tools canonjson.Value) canonjson.Value { return each(tools, openAIPart) })
	c := Call{
		Model:          member(body, "model"),
		Messages:       canonjson.Member{Key: "messages", Value: messages},
		SystemMessages: withRole(messages, "system", "developer"),
		User:           firstRole(messages, "user"),
	}
	c.Surface, c.Params = openAIChatKeys.split(body, "messages", "model")
	return c, true
}

// openAIPart takes the mark of a cached prefix off, which compatible servers know.
func openAIPart(part canonjson.Value) canonjson.Value { return without(part, "cache_control") }

// Usage implements Provider. A stream holds it in its last chunk, where the caller asked for it.
func (OpenAIChat) Usage(answer []byte) []byte { return lastObject(answer, "usage") }

// ErrorBody implements Provider.
func (OpenAIChat) ErrorBody(status int, message string) []byte { return openAIError(status, message) }
