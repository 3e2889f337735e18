package bare_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestURL(t *testing.T) {
	for in, want := range map[string]string{
		"HTTPS://API.Example.com:443":     "https://api.example.com/",
		"http://u:p@h:80/x?a=B#frag":      "http://h/x?a=B",
		"http://h:443/":                   "http://h:443/",
		"https://[2001:db8::1]:443/a":     "https://[2001:db8::1]/a",
		"http://127.0.0.1:8080/%2F?q=%20": "http://127.0.0.1:8080/%2F?q=%20",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := bare.URL(u); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestRules(t *testing.T) {
	if n, err := bare.RulesOf(&tape.Header{}); n != 1 || err != nil {
		t.Errorf("no rules: %d, %v", n, err)
	}
	if n, err := bare.RulesOf(&tape.Header{Extra: []tape.Field{bare.RulesField(3)}}); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := bare.RulesOf(&tape.Header{Extra: []tape.Field{bare.RulesField(scrub.Rules + 1)}}); err == nil {
		t.Error("rules of the future are known")
	}
}

// TestNumbers numbers placeholders of one recording across records, in records and in blobs.
func TestNumbers(t *testing.T) {
	s := bare.NewScrubber(nil)
	s.AddSecret("first", "aaaaaaaaaaaa1")
	s.AddSecret("second", "bbbbbbbbbbbb2")
	one, _ := s.Bytes([]byte("x bbbbbbbbbbbb2 aaaaaaaaaaaa1"))
	long, _ := s.Bytes([]byte(strings.Repeat("y", tape.InlineLimit) + "aaaaaaaaaaaa1"))
	store := cas.NewMemory()
	n := bare.NewNumbers(nil)
	n.Knows(s.Counts())
	for i, want := range []string{"x td_second_000000000001 td_first_000000000002", "td_first_000000000002"} {
		p, err := tape.MakePayload(store, [][]byte{one, long}[i])
		if err != nil {
			t.Fatal(err)
		}
		r := &tape.Record{Kind: &tape.HTTPExchange{Exchange: tape.Exchange{Response: p}}}
		if err := n.Record(r, store); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Bytes(store); err != nil || !strings.HasSuffix(string(got), want) {
			t.Errorf("%.100q, %v; want %q", got, err, want)
		}
	}
}
