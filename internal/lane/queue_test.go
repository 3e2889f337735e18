package lane

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

type message struct {
	Item
	n int
}

func byNumber(x, y *message) int { return x.n - y.n }

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
		q := Queue[*message]{Order: byNumber, SideBySide: r.IntN(2) == 0}
		var left []*message
		traits := make(map[*message]*Traits)
		for i := range 1 + r.IntN(20) {
			rec := &message{n: i}
			q.Add(rec)
			left, traits[rec] = append(left, rec), some()
		}
		q.Study(func(rec *message) *Traits { return traits[rec] })
		var n Names
		for len(left) > 0 {
			asked := some()
			i := search(&q, left, asked, &n)
			got, _ := q.Take(asked, &n)
			if got != left[i] {
				t.Fatalf("seed %d: %+v got %+v, want record %d", seed, asked, got, left[i].n)
			}
			n.Learn(got.IDs(), asked.IDTexts(), false)
			got.Served = true
			left = slices.Delete(left, i, i+1)
		}
		if got, ok := q.Take(some(), &n); ok {
			t.Fatalf("seed %d: an empty queue gave %+v", seed, got)
		}
	}
}

// search returns the index in left of what asked gets.
func search(q *Queue[*message], left []*message, asked *Traits, n *Names) int {
	if q.apart == nil {
		return 0
	}
	s := q.expect(asked, n)
	best, most := -1, 0
	for i, rec := range left {
		if l := s.likeness(&rec.Item); l > most || best < 0 && l == 0 && s.foreign(&rec.Item) == 0 {
			best, most = i, l
		}
	}
	return max(0, best)
}

// TestPassCompacts sees lists keep what was not handed out, in order, however they are passed.
func TestPassCompacts(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var list, want []*message
		for range r.IntN(30) {
			rec := &message{Item: Item{Served: r.IntN(2) == 0}}
			list = append(list, rec)
			if !rec.Served {
				want = append(want, rec)
			}
		}
		enough := r.IntN(10)
		var got []*message
		list = pass(list, func(rec *message) bool {
			got = append(got, rec)
			return len(got) < enough
		})
		if n := min(len(want), max(enough, 1)); !slices.Equal(got, want[:n]) {
			t.Fatalf("seed %d: was shown %d of %d", seed, len(got), n)
		}
		if left := slices.DeleteFunc(list, func(rec *message) bool { return rec.Served }); !slices.Equal(left, want) {
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
	got := traitsOf(ids...).Bounded().IDs
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
				q := Queue[*message]{Order: byNumber}
				for i := range n {
					q.Add(&message{n: i})
				}
				q.Study(func(rec *message) *Traits {
					t := traitsOf(strconv.Itoa(rec.n % 50))
					t.Attempt = strconv.Itoa(rec.n % 2)
					return t
				})
				var ids Names
				b.StartTimer()
				for i := range n {
					asked := traitsOf(strconv.Itoa(i % 50))
					asked.Attempt = strconv.Itoa(1 - i%2)
					m, _ := q.Take(asked, &ids)
					m.Served = true
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
		})
	}
}
