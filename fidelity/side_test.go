package fidelity

import (
	"fmt"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestAskedAgain: how often a question is asked that got the same answer three times does not gate; that it is asked does, and so do
// what it asks, and how often it was asked where the answers differ.
func TestAskedAgain(t *testing.T) {
	asks := func(n int, url string) (all []tape.Kind) {
		for i := range n {
			all = append(all, get(url, uint64(i+1), 200))
		}
		return all
	}
	other := get("http://h.test/limits", 3, 200)
	other.Response = inline("another answer")
	for name, tt := range map[string]struct {
		a, b []tape.Kind
		side string
		want int // divergences
	}{
		"more often":         {asks(3, "http://h.test/limits"), asks(5, "http://h.test/limits"), "GET /limits, 3 recorded, 5 on replay", 0},
		"less often":         {asks(4, "http://h.test/limits"), asks(1, "http://h.test/limits"), "GET /limits, 4 recorded, 1 on replay", 0},
		"never":              {asks(3, "http://h.test/limits"), nil, "", 3},
		"twice":              {asks(2, "http://h.test/limits"), asks(3, "http://h.test/limits"), "", 1},
		"another question":   {asks(3, "http://h.test/limits?a=1"), asks(3, "http://h.test/limits?a=2"), "", 3},
		"another answer":     {append(asks(2, "http://h.test/limits"), other), asks(2, "http://h.test/limits"), "", 1},
		"as often as it was": {asks(3, "http://h.test/limits"), asks(3, "http://h.test/limits"), "", 0},
	} {
		r := compareLanes(t, Semantic, tt.a, tt.b, nil)
		side := ""
		for i := range r.Side {
			side += r.Side[i].String()
		}
		if side != tt.side || (len(r.Divergences) == 0) != (tt.want == 0) {
			t.Errorf("%s: side %q, want %q; divergences %v", name, side, tt.side, codes(r))
		}
	}
}

// TestSideLine: a green verdict says how many calls of models matched.
func TestSideLine(t *testing.T) {
	for calls, want := range []string{"all else matched", "the one model call matched", "all 2 model calls matched"} {
		r := &Report{ModelCalls: calls, Side: []SideTraffic{{Method: "POST", Path: "/a", Recorded: 3, Replay: 4}, {Method: "POST", Path: "/b", Recorded: 1, Replay: 1, Differ: 1}}}
		want = fmt.Sprintf("%s; side traffic differs: POST /a, 3 recorded, 4 on replay; POST /b, 1 recorded, 1 on replay, 1 with another content", want)
		if got := r.sideLine(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestHintFor: what makes a request compare depends on how it differs; no mask sets an order right.
func TestHintFor(t *testing.T) {
	llm, plain := &entry{rec: &tape.Record{Kind: refused(1, "x", "no")}}, &entry{rec: &tape.Record{Kind: get("http://h.test/a", 1, 400)}}
	for _, tt := range []struct {
		of      *entry
		changes []Change
		want    string
	}{
		{llm, []Change{{Op: Changed}}, hintMadeUp},
		{llm, []Change{{Op: Moved}, {Op: Changed}}, hintMadeUp},
		{llm, []Change{{Op: Moved}}, hintOrder},
		{llm, DiffJSON([]byte(`{"a":"one; two; three"}`), []byte(`{"a":"one; three; two"}`)), hintOrder},
		{llm, DiffJSON([]byte(`{"a":"one; two; three"}`), []byte(`{"a":"one; three; four"}`)), hintMadeUp},
		{llm, []Change{{Op: Added}, {Op: Removed}}, hintOrder},
		{llm, nil, hintMadeUp},
		{plain, []Change{{Op: Changed}}, hintSide},
		{plain, []Change{{Op: Moved}}, hintOrder},
	} {
		if got := hintFor(&placed{Divergence: Divergence{Changes: tt.changes}, evidence: evidence{refused: tt.of}}); got != tt.want {
			t.Errorf("%T %+v: %q, want %q", tt.of.rec.Kind, tt.changes, got, tt.want)
		}
	}
}
