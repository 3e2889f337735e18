package scriptedllm

import (
	"encoding/json"
)

// A Plain answers the body of a request that makes no model speak: a list, a count, an upload.
type Plain = func(body []byte) (map[string]any, error)

// plains are those that are told by their operation.
var plains = map[string]Plain{
	"anthropic count_tokens":        countAs("input_tokens"),
	"openai responses.input_tokens": countAs("input_tokens"),
	"gemini countTokens":            countAs("totalTokens"),
}

// countAs answers with the length of the request in tokens.
func countAs(key string) Plain {
	return func(body []byte) (object, error) { return object{key: tokens(len(body))}, nil }
}

// list answers with what is listed, always.
func list(text string) Plain {
	return func([]byte) (out object, err error) { return out, json.Unmarshal([]byte(text), &out) }
}

// The lists of models, a few each, in the shape of the provider.
var (
	anthropicModels = list(`{"data":[{"type":"model","id":"claude-sonnet-4-5","display_name":"Claude Sonnet 4.5",
		"created_at":"2025-09-29T00:00:00Z"}],"has_more":false,"first_id":"claude-sonnet-4-5","last_id":"claude-sonnet-4-5"}`)
	openaiModels = list(`{"object":"list","data":[{"id":"gpt-4o","object":"model","created":1767225600,"owned_by":"openai"},
		{"id":"gpt-5","object":"model","created":1767225600,"owned_by":"openai"},
		{"id":"gpt-5-codex","object":"model","created":1767225600,"owned_by":"openai"}]}`)
	geminiModels = list(`{"models":[{"name":"models/gemini-2.5-flash","version":"001","displayName":"Gemini 2.5 Flash",
		"inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","streamGenerateContent"]}]}`)
	ollamaModels = list(`{"models":[{"name":"qwen3:4b","model":"qwen3:4b","modified_at":"2026-01-01T00:00:00Z","size":2497293931,
		"digest":"359d7dd4bcdab3d86b87d73ac27966f4dbb9f5efdfcc75d34a8764a09474fae7","details":{"parent_model":"","format":"gguf",
		"family":"qwen3","families":["qwen3"],"parameter_size":"4.0B","quantization_level":"Q4_K_M"}}]}`)
)
