package llm

import "encoding/json"

// openAIIgnored are the keys of both OpenAI APIs that never change an answer.
var openAIIgnored = []string{
	"client_metadata", "metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "store", "user",
}

// openAIError is the error object of both OpenAI APIs.
func openAIError(status int, message string) []byte {
	type detail struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Param   json.RawMessage `json:"param"`
		Code    json.RawMessage `json:"code"`
	}
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	}
	return marshal(struct {
		Error detail `json:"error"`
	}{detail{Message: message, Type: kind}})
}
