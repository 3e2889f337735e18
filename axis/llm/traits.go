package llm

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// untelling are headers that say nothing of who asks.
var untelling = []string{"Content-Length", "Connection"}

// Traits implements exchange.Classifier.
func (c *Classifier) Traits(r *exchange.Request) *exchange.Traits {
	t := &exchange.Traits{Attempt: attempt(r.Header)}
	c.addFacts(t, "url", []byte(r.URL))
	c.addFacts(t, "body", r.Body)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if slices.Contains(untelling, name) {
			continue
		}
		for _, v := range r.Header[name] {
			c.addFacts(t, name, []byte(v))
			t.Texts = append(t.Texts, name+": "+string(c.comparable([]byte(v))))
		}
	}
	return t
}

// addFacts adds what masks take out of a part of a request. A place is the number of the fact among those of its part.
func (c *Classifier) addFacts(t *exchange.Traits, part string, b []byte) {
	for i, fact := range c.masker.Facts(b) {
		place := part + " " + strconv.Itoa(i)
		if fact.Names {
			t.IDs = append(t.IDs, exchange.ID{Place: place, Text: fact.Text})
		} else {
			t.Texts = append(t.Texts, place+": "+fact.Text)
		}
	}
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
