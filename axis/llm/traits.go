package llm

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// untelling are headers that say nothing of who asks: lengths follow from times, which are equal by chance.
var untelling = []string{"Content-Length", "Connection"}

// Traits implements exchange.Classifier.
func (c *Classifier) Traits(r *exchange.Request) *exchange.Traits {
	t := &exchange.Traits{IDs: append(c.masker.IDs([]byte(r.URL)), c.masker.IDs(r.Body)...)}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if slices.Contains(untelling, name) {
			continue
		}
		for _, v := range r.Header[name] {
			t.IDs = append(t.IDs, c.masker.IDs([]byte(v))...)
			t.Texts = append(t.Texts, name+": "+string(c.comparable([]byte(v))))
		}
	}
	if n := attempt(r.Header); n != "" {
		t.Texts = append(t.Texts, "attempt "+n)
	}
	return t
}

// attempt says how often the sender of a request has tried before: the SDKs of OpenAI and Anthropic count their retries,
// those of AWS their attempts.
func attempt(h http.Header) string {
	if n := h.Get("X-Stainless-Retry-Count"); n != "" {
		return n
	}
	attempt, _, _ := strings.Cut(h.Get("Amz-Sdk-Request"), ";")
	return attempt
}
