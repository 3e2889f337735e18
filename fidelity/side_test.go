package fidelity

import (
	"fmt"
	"testing"
	"time"

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

// TestAskedInOneGo: how often one thread tried counts where nothing else of the run went on meanwhile, and no timer had it try.
func TestAskedInOneGo(t *testing.T) {
	type run struct {
		n        int
		apart    int64 // ms
		ownTicks bool
		beside   bool // another process is under way
		threads  bool // they are two threads'
	}
	of := func(r run) Records {
		return func(yield func(*tape.Record, error) bool) {
			for i := range uint64(r.n) {
				k, by := get("https://h.test/limits", i+1, 404), uint64(2)
				if r.threads {
					by += i % 2
				}
				k.Extra = append(tape.NumberField(tape.PlaceKey, 10*i+10), tape.NumberField(tape.OpenerKey, by)...)
				yield(&tape.Record{Seq: i, G: 10*i + 15, MonotonicMS: int64(i) * r.apart, Kind: k}, nil)
			}
			all := []*tape.ProcessSpawn{{Program: "/bin/tries", SpawnID: 2, ParentSpawnID: 1}, {Program: "/bin/works", SpawnID: 4, ParentSpawnID: 1}}
			all[0].Extra = tape.FlagFields(map[string]bool{tape.OwnTicksKey: r.ownTicks})
			began := []uint64{1, 2}
			if !r.beside {
				began[1] = 200
			}
			for i, p := range all {
				p.Extra = append(p.Extra, tape.NumberField(tape.PlaceKey, began[i])...)
				yield(&tape.Record{Seq: uint64(50 + i), G: 210, Kind: p}, nil)
			}
			p := program("", 0)
			p.SpawnID = 1
			yield(&tape.Record{Seq: 60, G: 220, Kind: p}, nil)
		}
	}
	for name, tt := range map[string]struct {
		recorded, replay run
		red              bool
	}{
		"once more":                  {run{n: 3, apart: 2000}, run{n: 4}, true},
		"once less":                  {run{n: 3, apart: 2000}, run{n: 2}, true},
		"beside a process":           {run{n: 3, beside: true}, run{n: 4, beside: true}, false},
		"beside one on replay":       {run{n: 3}, run{n: 4, beside: true}, false},
		"two threads":                {run{n: 3, threads: true}, run{n: 4, threads: true}, false},
		"a runtime's, at once":       {run{n: 3, apart: 20, ownTicks: true}, run{n: 4, ownTicks: true}, true},
		"a runtime's, after a while": {run{n: 3, apart: 2000, ownTicks: true}, run{n: 4, ownTicks: true}, false},
	} {
		r, err := CompareLanes(Semantic, of(tt.recorded), of(tt.replay), nil)
		if err != nil {
			t.Fatal(err)
		}
		if red := len(r.Divergences) > 0; red != tt.red || red == (len(r.Side) > 0) {
			t.Errorf("%s: %v, side %v", name, codes(r), r.Side)
		}
	}
}

// TestAskedInOneGoOften: what is looked at of a question does not grow with how often it was asked more.
func TestAskedInOneGoOften(t *testing.T) {
	run := func(n uint64) Records {
		return func(yield func(*tape.Record, error) bool) {
			for i := range n {
				k := get("https://h.test/limits", i+1, 404)
				k.Extra = append(tape.NumberField(tape.PlaceKey, 10*i+10), tape.NumberField(tape.OpenerKey, 2)...)
				yield(&tape.Record{Seq: i, G: 10*i + 15, Kind: k}, nil)
			}
			p := program("", 0)
			p.SpawnID = 2
			yield(&tape.Record{Seq: n, G: 10*n + 20, Kind: p}, nil)
		}
	}
	began := time.Now()
	r, err := CompareLanes(Semantic, run(3), run(3000), nil)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); len(r.Divergences) == 0 || took > 10*time.Second {
		t.Errorf("%d divergences in %v", len(r.Divergences), took)
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
