package lane

import (
	"maps"
	"slices"
	"sync"
)

// maxTried is how many messages at most are tried for one request that none fits in all that sets some apart.
const maxTried = 256

// An Item is what a Queue knows of one of its messages. Its zero value is one that nothing is known of.
type Item struct {
	Served bool // it was handed out; guarded by whose the queue is

	traits *Traits        // nil before its queue was studied
	own    map[trait]bool // of traits, what others of the queue have not; nil where it has none, and before
}

func (i *Item) item() *Item { return i }

// Queued is who has an Item in it.
type Queued interface {
	comparable
	item() *Item
}

// IDs are the ids of a message of a queue that was studied.
func (i *Item) IDs() []string { return i.traits.IDTexts() }

// A Queue is the recorded messages of one key, in the order in which they came, and hands each out once. What was handed out may still
// stand in waiting, or in apart, until it is come upon there. It is guarded by whose it is, but for Study.
type Queue[T Queued] struct {
	All []T
	// Order is that of All.
	Order func(x, y T) int
	// SideBySide says that some of All were under way together while recording.
	SideBySide bool

	waiting []T
	studied sync.Once
	apart   map[trait][]T // by what some of All have and some have not; nil before Study, and where all are alike
}

// Add adds the message that came last.
func (q *Queue[T]) Add(m T) {
	q.All = append(q.All, m)
	q.waiting = append(q.waiting, m)
}

// Study finds out, once, what tells the messages of the queue apart. traits reads those of one.
func (q *Queue[T]) Study(traits func(T) *Traits) {
	q.studied.Do(func() {
		index := make(map[trait][]T)
		for _, m := range q.All {
			m.item().traits = traits(m)
			for t := range m.item().traits.set() {
				if t.kind != saidText || q.SideBySide {
					index[t] = append(index[t], m)
				}
			}
		}
		for t, having := range index {
			if len(having) == len(q.All) {
				delete(index, t)
			}
		}
		if len(index) == 0 {
			return
		}
		q.apart = index
		for _, m := range q.All {
			m.item().own = m.item().traits.set()
			maps.DeleteFunc(m.item().own, func(t trait, _ bool) bool { return index[t] == nil })
		}
	})
}

// Take returns the message that is most like what is asked of those that were not handed out, of equally like ones the
// first; false where there is none. asked is nil for one of which nothing is known but its key.
func (q *Queue[T]) Take(asked *Traits, ids *Names) (m T, ok bool) {
	q.waiting = unserved(q.waiting)
	switch {
	case len(q.waiting) == 0:
		return m, false
	case asked == nil || q.apart == nil:
		return q.waiting[0], true
	}
	s := q.expect(asked, ids)
	if m, ok := q.likest(s); ok {
		return m, true
	}
	first, tried := q.waiting[0], 0
	q.waiting = pass(q.waiting, func(m T) bool {
		tried++
		own := s.foreign(m.item()) == 0
		if own {
			first = m
		}
		return !own && tried < maxTried
	})
	return first, true
}

// Likeness says how like messages of the queue are to what is asked; all are alike where nothing tells them apart.
func (q *Queue[T]) Likeness(asked *Traits, ids *Names) func(T) int {
	if asked == nil || q.apart == nil {
		return func(T) int { return 0 }
	}
	s := q.expect(asked, ids)
	return func(m T) int { return s.likeness(m.item()) }
}

// GiveBack takes back what was handed out.
func (q *Queue[T]) GiveBack(m T) {
	q.waiting = q.insert(q.waiting, m)
	for t := range m.item().own {
		q.apart[t] = q.insert(q.apart[t], m)
	}
}

// insert puts a message where it belongs in a list, unless it is still there.
func (q *Queue[T]) insert(list []T, m T) []T {
	i, _ := slices.BinarySearchFunc(list, m, q.Order)
	if i < len(list) && list[i] == m {
		return list
	}
	return slices.Insert(slices.Clip(list), i, m)
}

// likest returns the first of those that have most of what is expected; false where none has more of it than of another's.
func (q *Queue[T]) likest(s *expected[T]) (best T, ok bool) {
	most, tried := 0, 0
	for _, t := range s.wanted {
		q.apart[t] = pass(q.apart[t], func(m T) bool {
			n := s.likeness(m.item())
			if n > most || n == most && ok && q.Order(m, best) < 0 {
				best, most, ok = m, n, true
			}
			tried++
			return n < s.full && tried < maxTried
		})
		if most == s.full || tried >= maxTried {
			break // who has all that is wanted stands in each of the lists, the first such one first
		}
	}
	return best, ok
}

// unserved cuts what was handed out off the front of a list.
func unserved[T Queued](list []T) []T {
	for len(list) > 0 && list[0].item().Served {
		list = list[1:]
	}
	return list
}

// pass shows the messages of a list that were not handed out, until more says that it has seen enough. What was handed out it
// takes out of the part that it passes, so that nothing is passed twice.
func pass[T Queued](list []T, more func(T) bool) []T {
	kept, passed := 0, 0
	for goOn := true; goOn && passed < len(list); passed++ {
		m := list[passed]
		if m.item().Served {
			continue
		}
		list[kept] = m
		kept++
		goOn = more(m)
	}
	copy(list[passed-kept:passed], list[:kept])
	return list[passed-kept:]
}
