package exchange

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestQueue holds that attempts are answered as by a search through all that is left: the first of the attempt, else the
// first.
func TestQueue(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		kinds := 1 + r.IntN(3)
		attempt := func() string { return strconv.Itoa(r.IntN(kinds)) }
		var q queue
		var left []*Recorded
		for i := range 1 + r.IntN(20) {
			rec := &Recorded{Seq: uint64(i), attempt: attempt()}
			q.add(rec)
			left = append(left, rec)
		}
		served := make(map[*Recorded]bool)
		for len(left) > 0 {
			asked := attempt()
			i := max(0, slices.IndexFunc(left, func(rec *Recorded) bool { return rec.attempt == asked }))
			got := q.take(asked, served)
			if got != left[i] {
				t.Fatalf("seed %d: attempt %s got %+v, want record %d", seed, asked, got, left[i].Seq)
			}
			served[got] = true
			left = slices.Delete(left, i, i+1)
		}
		if got := q.take("0", served); got != nil {
			t.Fatalf("seed %d: an empty queue gave %+v", seed, got)
		}
	}
}
