package scriptedllm

import (
	"net/http"
	"strings"
)

// openai is what the chat completions and the responses API share.
type openai struct{}

func (openai) provider() string { return "openai" }

func (openai) key(r *http.Request) string { return bearer(r) }

func (openai) header(h http.Header, ids *ids) {
	h.Set("X-Request-Id", ids.fresh("req_", hexits, 32))
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", "42")
}

func (openai) failure(status int, message string) object {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case status == http.StatusUnauthorized:
		code = "invalid_api_key"
	case status == http.StatusTooManyRequests:
		kind, code = "requests", "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}
}

// An openaiFormat is how a request asks for an object instead of a text.
type openaiFormat struct {
	Schema *schema `json:"schema"`
}

// An openaiFunction is a function tool.
type openaiFunction struct {
	Name       string `json:"name"`
	Parameters schema `json:"parameters"`
}

// bearer is the token of an Authorization header.
func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}
