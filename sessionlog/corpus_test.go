package sessionlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tapedeck-dev/tapedeck/corpus"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// sentinels are the names that the corpus has for errors.
var sentinels = map[string]error{
	"torn": sessionlog.ErrTorn, "not-json": sessionlog.ErrNotJSON, "malformed": sessionlog.ErrMalformed,
}

func TestCorpus(t *testing.T) {
	cases, err := corpus.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			strict := c.Get("expect")
			checkCase(t, &c, strict, nil)
			if tolerant := c.Get("tolerant"); strict == "torn" {
				strict = tolerant
			}
			checkCase(t, &c, strict, &sessionlog.ReaderOptions{Tolerant: true})
		})
	}
}

func checkCase(t *testing.T, c *corpus.Case, code string, o *sessionlog.ReaderOptions) {
	r := sessionlog.NewReader(bytes.NewReader(c.Body), "case", o)
	var saved []byte
	check := sessionlog.CategoryCheck{Passed: true}
	entries, events, broken := 0, 0, 0
	for e, err := range r.Entries() {
		if err != nil {
			break
		}
		entries++
		saved = e.AppendTo(saved)
		check.See(e)
		event, err := e.Event()
		switch {
		case err != nil && broken == 0:
			broken = e.Line
		case event != nil:
			events++
		}
	}
	if got := codeOf(r.Err()); got != code {
		t.Fatalf("it says %q, want %q: %v", got, code, r.Err())
	}
	want := func(key string, got int) {
		t.Helper()
		if n, err := c.Int(key); err != nil || n != got {
			t.Errorf("%s: %d, want %d: %v", key, got, n, err)
		}
	}
	want("entries", entries)
	if r.Err() != nil {
		var load *sessionlog.LoadError
		if !errors.As(r.Err(), &load) {
			t.Fatal(r.Err())
		}
		want("line", load.Line)
		return
	}
	want("events", events)
	want("event", broken)
	if o != nil && (r.Torn() != nil) != (c.Get("tolerant") != "") {
		t.Errorf("torn is %v", r.Torn())
	}
	if saved = append(saved, r.Tail()...); r.Torn() == nil && !bytes.Equal(saved, c.Body) {
		t.Errorf("it is saved as %q", saved)
	}
	order := r.Order()
	if got := c.Get("order") == "disordered"; got == (order.First == nil) {
		t.Errorf("order: %v", order.First)
	}
	offender := ""
	if check.First != nil {
		offender = fmt.Sprint(check.First.Line, " ", check.First.Kind)
	}
	if offender != c.Get("categories") {
		t.Errorf("the category check names %q, want %q", offender, c.Get("categories"))
	}
}

func codeOf(err error) string {
	if err == nil {
		return "loads"
	}
	for code, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return code
		}
	}
	return err.Error()
}
