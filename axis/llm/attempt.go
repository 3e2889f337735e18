package llm

import (
	"net/http"
	"strings"
)

// Attempt implements exchange.Classifier: the SDKs of OpenAI and Anthropic count their retries, those of AWS their attempts.
func (c *Classifier) Attempt(h http.Header) string {
	if n := h.Get("X-Stainless-Retry-Count"); n != "" {
		return n
	}
	attempt, _, _ := strings.Cut(h.Get("Amz-Sdk-Request"), ";")
	return attempt
}
