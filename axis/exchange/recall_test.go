package exchange_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// blind is a classifier for which requests to one URL are equal whatever their bodies are, as masks can make them.
type blind struct{ classifier }

func (blind) Classify(r *exchange.Request) (*exchange.Identity, error) {
	return &exchange.Identity{Key: exchange.Key{Method: r.Method, URL: r.URL, Request: cas.Sum([]byte(r.URL))}}, nil
}

// TestRecallOfAnother: a request that names the same as the recorded one tells what its placeholders stand for; one that names
// more, less or something else tells nothing, for which value stands for which is not known.
func TestRecallOfAnother(t *testing.T) {
	const was, isNow, other = "recorded-0123456789", "of-the-replay-987654", "another-5647382910"
	g := newRig(t, exchange.TapOptions{})
	g.tap = exchange.NewTap(g.rec, blind{}, g.scrub, nil)
	g.answer(g.begin(url, `{"password":"`+was+`","api_key":"`+canary+`"}`), "", headers("Content-Type", "application/json"), []byte(`{"password":"`+was+`"}`))
	x, _ := g.last()
	answered := g.payload(x.Response)
	for sent, want := range map[string]bool{
		`{"password":"` + isNow + `","api_key":"` + other + `"}`:                          true,
		`{"password":"` + isNow + `"}`:                                                    false,
		`{"password":"` + isNow + `","api_key":"` + other + `","id_token":"` + was + `"}`: false,
		`{"client_secret":"` + isNow + `","api_key":"` + other + `"}`:                     false,
		`{"api_key":"` + other + `","password":"` + isNow + `"}`:                          false,
		`{"password":"` + isNow + `","id_token":"` + other + `"}`:                         false,
		`{}`: false,
	} {
		book, err := exchange.NewBook(g.records(), blind{}, g.store)
		if err != nil {
			t.Fatal(err)
		}
		s := newScrubber()
		tap := exchange.NewTap(nil, blind{}, s, &exchange.TapOptions{Replay: true})
		o, err := tap.Begin(&exchange.Request{Method: "POST", URL: url, Body: []byte(sent)})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := o.Take(book); !ok {
			t.Fatalf("%s: no answer", sent)
		}
		given := string(s.Reveal([]byte(answered)))
		if strings.Contains(given, isNow) != want || strings.Contains(given, other) {
			t.Errorf("%s: the program gets %s", sent, given)
		}
	}
}
