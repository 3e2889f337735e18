package fidelity

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestPlainOrder: plain requests to two hosts that both runs made one after the other may not change places; where two were under way
// at once they may.
func TestPlainOrder(t *testing.T) {
	type request struct {
		host     string
		from, to uint64 // ordinals
		by       uint64
	}
	of := func(all ...request) Records {
		return func(yield func(*tape.Record, error) bool) {
			for i, r := range all {
				k := get("https://"+r.host+"/x", uint64(i+1), 200)
				k.Extra = append(tape.NumberField(placeKey, r.from), tape.NumberField(tape.OpenerKey, r.by)...)
				if !yield(&tape.Record{Seq: uint64(i), G: r.to, Kind: k}, nil) {
					return
				}
			}
		}
	}
	ab := of(request{"a.test", 1, 3, 0}, request{"b.test", 4, 6, 0})
	for name, tt := range map[string]struct {
		recorded, replay Records
		want             int
	}{
		"the same":                     {ab, ab, 0},
		"another order":                {ab, of(request{"b.test", 1, 3, 0}, request{"a.test", 4, 6, 0}), 1},
		"at once while recording":      {of(request{"a.test", 1, 3, 0}, request{"b.test", 2, 4, 0}), of(request{"b.test", 1, 3, 0}, request{"a.test", 4, 6, 0}), 0},
		"at once on replay":            {ab, of(request{"b.test", 1, 3, 0}, request{"a.test", 2, 4, 0}), 0},
		"one host":                     {of(request{"a.test/1", 1, 3, 5}, request{"a.test/2", 4, 6, 5}), of(request{"a.test/2", 1, 3, 5}, request{"a.test/1", 4, 6, 5}), 1},
		"two threads":                  {of(request{"a.test", 1, 3, 5}, request{"b.test", 4, 6, 6}), of(request{"b.test", 1, 3, 6}, request{"a.test", 4, 6, 5}), 0},
		"of a tape that does not tell": {of(request{"a.test", 0, 0, 0}, request{"b.test", 0, 0, 0}), of(request{"b.test", 1, 3, 0}, request{"a.test", 4, 6, 0}), 0},
	} {
		r, err := CompareLanes(Semantic, tt.recorded, tt.replay, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Divergences) != tt.want || tt.want > 0 && r.Divergences[0].Category != HTTPOrder {
			t.Errorf("%s: %v, want %d", name, r.Divergences, tt.want)
		}
	}
}
