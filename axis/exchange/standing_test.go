package exchange_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// counting is a classifier that counts what it is asked.
type counting struct {
	classifier
	asked int
}

func (c *counting) Classify(r *exchange.Request) (*exchange.Identity, error) {
	c.asked++
	return c.classifier.Classify(r)
}

// TestStanding: a request that stands on the tape to the byte is identified once, and is recorded as it would be else.
func TestStanding(t *testing.T) {
	const body = `{"model":"m","messages":["a"]}`
	g := newRig(t, exchange.TapOptions{})
	for _, b := range []string{body, body, "hello " + secret, string(make([]byte, 2*tape.InlineLimit))} {
		g.answer(g.begin(url, b, "X-Who", "me", "X-Api-Key", secret), "", nil, []byte("x"))
	}
	g.flush()
	f, err := tape.NewReader(bytes.NewReader(g.tape.Bytes()), "tape")
	if err != nil {
		t.Fatal(err)
	}
	book, err := exchange.NewBook(f.Records(), classifier{}, g.store)
	if err != nil {
		t.Fatal(err)
	}
	c := new(counting)
	tap := exchange.NewTap(nil, c, newScrubber(), &exchange.TapOptions{Replay: true, Closed: true})
	for _, tt := range []struct {
		name, url, body, who string
		asked                int
		taken                bool
	}{
		{"as it was", url, body, "me", 1, true},
		{"as it was, again", url, body, "me", 0, true},
		{"another header", url, body, "you", 1, false},
		{"a secret in it", url, "hello " + secret, "me", 1, true},
		{"a long one", url, string(make([]byte, 2*tape.InlineLimit)), "me", 1, true},
		{"another body", url, body + " ", "me", 1, false},
		{"another URL", url + "?", body, "me", 1, false},
	} {
		c.asked = 0
		r := &exchange.Request{Method: http.MethodPost, URL: tt.url, Header: headers("X-Who", tt.who, "X-Api-Key", secret), Body: []byte(tt.body)}
		o, err := tap.BeginFrom(book, r)
		if err != nil {
			t.Fatal(err)
		}
		rec, ok := o.Take(book)
		if c.asked != tt.asked || ok != tt.taken {
			t.Errorf("%s: asked %d times, taken %v", tt.name, c.asked, ok)
		}
		if ok && (o.Key() != rec.Key || o.Identity().Key != rec.Key) {
			t.Errorf("%s: %+v", tt.name, o.Identity())
		}
	}
}
