package exchange

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
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
				t.IDs = append(t.IDs, ID{Place: strconv.Itoa(len(t.IDs)), Text: strconv.Itoa(r.IntN(kinds + 1))})
			}
			for range r.IntN(2) {
				t.Texts = append(t.Texts, strconv.Itoa(r.IntN(kinds)))
			}
			return t
		}
		q := queue{sideBySide: r.IntN(2) == 0}
		var left []*Recorded
		traits := make(map[*Recorded]*Traits)
		for i := range 1 + r.IntN(20) {
			rec := &Recorded{Seq: uint64(i), Exchange: new(tape.Exchange)}
			q.add(rec)
			left, traits[rec] = append(left, rec), some()
		}
		q.study(func(rec *Recorded) *Traits { return traits[rec] })
		var n lane.Names
		for len(left) > 0 {
			asked := some()
			i := search(&q, left, asked, &n)
			got := q.take(asked, &n)
			if got != left[i] {
				t.Fatalf("seed %d: %+v got %+v, want record %d", seed, asked, got, left[i].Seq)
			}
			n.Learn(got.traits.idTexts(), asked.idTexts(), false)
			got.served = true
			left = slices.Delete(left, i, i+1)
		}
		if got := q.take(some(), &n); got != nil {
			t.Fatalf("seed %d: an empty queue gave %+v", seed, got)
		}
	}
}

// search returns the index in left of what asked gets.
func search(q *queue, left []*Recorded, asked *Traits, n *lane.Names) int {
	var s *expected
	if q.apart == nil {
		return 0
	}
	s = q.expect(asked, n)
	best, most := -1, 0
	for i, rec := range left {
		if l := s.likeness(rec); l > most || best < 0 && l == 0 && s.foreign(rec) == 0 {
			best, most = i, l
		}
	}
	return max(0, best)
}

// TestPassCompacts sees lists keep what was not handed out, in order, however they are passed.
func TestPassCompacts(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var list, want []*Recorded
		for range r.IntN(30) {
			rec := &Recorded{served: r.IntN(2) == 0}
			list = append(list, rec)
			if !rec.served {
				want = append(want, rec)
			}
		}
		enough := r.IntN(10)
		var got []*Recorded
		list = pass(list, func(rec *Recorded) bool {
			got = append(got, rec)
			return len(got) < enough
		})
		if n := min(len(want), max(enough, 1)); !slices.Equal(got, want[:n]) {
			t.Fatalf("seed %d: was shown %d of %d", seed, len(got), n)
		}
		if left := slices.DeleteFunc(list, func(rec *Recorded) bool { return rec.served }); !slices.Equal(left, want) {
			t.Fatalf("seed %d: %d are left, want %d", seed, len(left), len(want))
		}
	}
}

// TestTraitsAreBounded: a request of very many ids is told apart by its first and its last.
func TestTraitsAreBounded(t *testing.T) {
	var ids []string
	for i := range 5000 {
		ids = append(ids, strconv.Itoa(i))
	}
	got := traitsOf(ids...).bounded().IDs
	if len(got) != maxIDs || got[0].Text != "0" || got[maxIDs-1].Text != "4999" {
		t.Errorf("%d ids, from %v to %v", len(got), got[0], got[len(got)-1])
	}
}

// traitsOf are the traits of a request that holds ids.
func traitsOf(ids ...string) *Traits {
	t := new(Traits)
	for i, id := range ids {
		t.IDs = append(t.IDs, ID{strconv.Itoa(i), id})
	}
	return t
}

// BenchmarkTakePartly answers requests of one key that share something with very many records each, and everything with
// none, and reports what one costs.
func BenchmarkTakePartly(b *testing.B) {
	for _, n := range []int{2000, 16000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				var q queue
				for i := range n {
					q.add(&Recorded{Seq: uint64(i), Exchange: new(tape.Exchange)})
				}
				q.study(func(rec *Recorded) *Traits {
					t := traitsOf(strconv.FormatUint(rec.Seq%50, 10))
					t.Attempt = strconv.FormatUint(rec.Seq%2, 10)
					return t
				})
				var ids lane.Names
				b.StartTimer()
				for i := range n {
					asked := traitsOf(strconv.Itoa(i % 50))
					asked.Attempt = strconv.Itoa(1 - i%2)
					q.take(asked, &ids).served = true
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
		})
	}
}

// TestOverlap sees which requests of a queue were under way together.
func TestOverlap(t *testing.T) {
	rec := func(g uint64, endedMS int64, chunks ...tape.Chunk) *Recorded {
		return &Recorded{g: g, endedMS: endedMS, Exchange: &tape.Exchange{Stream: chunks}}
	}
	for name, tt := range map[string]struct {
		by   []*Recorded // arrival
		want bool
	}{
		"one after another":               {[]*Recorded{rec(2, 5, tape.Chunk{G: 1, TMS: 3}), rec(4, 9, tape.Chunk{G: 3, TMS: 4})}, false},
		"the second ended first":          {[]*Recorded{rec(4, 9), rec(2, 5)}, true},
		"the second began to come before": {[]*Recorded{rec(3, 5, tape.Chunk{G: 1}), rec(4, 5, tape.Chunk{G: 2})}, true},
		"the second was asked before":     {[]*Recorded{rec(2, 50, tape.Chunk{G: 1}), rec(4, 90, tape.Chunk{G: 3, TMS: 60})}, true},
		"a tape without times":            {[]*Recorded{rec(0, 0), rec(0, 0)}, false},
	} {
		q := queue{all: tt.by}
		if got := q.overlap(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
