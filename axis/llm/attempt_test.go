package llm_test

import (
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// take asks book for the answer to a request, as a replay does.
func take(t *testing.T, c *llm.Classifier, book *exchange.Book, r *exchange.Request) (*exchange.Recorded, bool) {
	t.Helper()
	tap := exchange.NewTap(nil, c, scrub.New(scrub.Key{1}, nil), &exchange.TapOptions{Replay: true})
	o, err := tap.Begin(r)
	if err != nil {
		t.Error(err)
		return nil, false
	}
	return o.Take(book)
}

func TestAttempt(t *testing.T) {
	c := llm.NewClassifier(nil)
	for name, tt := range map[string]struct {
		header http.Header
		want   string
	}{
		"none":      {http.Header{"User-Agent": {"x"}}, ""},
		"stainless": {http.Header{"X-Stainless-Retry-Count": {"2"}}, "2"},
		"aws":       {http.Header{"Amz-Sdk-Request": {"attempt=1; max=3"}}, "attempt=1"},
	} {
		if got := c.Attempt(tt.header); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
