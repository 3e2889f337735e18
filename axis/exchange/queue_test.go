package exchange

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestQueue holds that the index of a queue gives what a search through all that is left gives: of those with the most of
// what is asked, the first.
func TestQueue(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 0))
		kinds := 1 + r.IntN(3)
		some := func() *Traits {
			t := new(Traits)
			for range r.IntN(3) {
				t.IDs = append(t.IDs, strconv.Itoa(r.IntN(kinds+1)))
			}
			for range r.IntN(2) {
				t.Texts = append(t.Texts, strconv.Itoa(r.IntN(kinds)))
			}
			return t
		}
		var q queue
		var left []*Recorded
		traits := make(map[*Recorded]*Traits)
		for i := range 1 + r.IntN(20) {
			rec := &Recorded{Seq: uint64(i), Exchange: new(tape.Exchange)}
			q.add(rec)
			left, traits[rec] = append(left, rec), some()
		}
		q.study(func(rec *Recorded) *Traits { return traits[rec] })
		served := make(map[*Recorded]bool)
		var n names
		for len(left) > 0 {
			asked := some()
			i := search(&q, left, asked, &n)
			got := q.take(asked, &n, served)
			if got != left[i] {
				t.Fatalf("seed %d: %+v got %+v, want record %d", seed, asked, got, left[i].Seq)
			}
			n.learn(asked, got.traits)
			served[got] = true
			left = slices.Delete(left, i, i+1)
		}
		if got := q.take(some(), &n, served); got != nil {
			t.Fatalf("seed %d: an empty queue gave %+v", seed, got)
		}
	}
}

// search returns the index in left of what asked gets.
func search(q *queue, left []*Recorded, asked *Traits, n *names) int {
	var s *sought
	if q.apart == nil {
		return 0
	}
	s = q.seek(asked, n)
	best, most := -1, 0
	for i, rec := range left {
		if l := s.likeness(rec); l > most || best < 0 && l == 0 && s.foreign(rec) == 0 {
			best, most = i, l
		}
	}
	return max(0, best)
}

// TestNames sees what a match teaches, and that a later one unteaches nothing.
func TestNames(t *testing.T) {
	var n names
	n.learn(&Traits{IDs: []string{"w1", "c"}}, &Traits{IDs: []string{"u1", "c"}})
	n.learn(&Traits{IDs: []string{"w2"}}, &Traits{IDs: []string{"u1"}})       // u1 is taken
	n.learn(&Traits{IDs: []string{"w1"}}, &Traits{IDs: []string{"u3"}})       // w1 is known
	n.learn(&Traits{IDs: []string{"w4", "w5"}}, &Traits{IDs: []string{"u4"}}) // nothing stands in the same place
	for now, want := range map[string]string{"w1": "u1", "c": "c", "w2": "w2", "w4": "w4"} {
		if got := n.of(now); got != want {
			t.Errorf("%s stands for %s, want %s", now, got, want)
		}
	}
}
