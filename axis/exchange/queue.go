package exchange

import (
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// queue is the recorded exchanges of one key, by arrival. What was handed out may still stand in waiting, or in apart, until
// it comes to the front there.
type queue struct {
	all     []*Recorded
	waiting []*Recorded // the end of all
	asked   int
	studied sync.Once
	apart   map[trait][]*Recorded // by what some of all have and some have not; nil before study, and where all are alike
}

func (q *queue) add(rec *Recorded) {
	q.all = append(q.all, rec)
	q.waiting = q.all
}

// mixed reports whether the requests of the queue may have unlike traits. It reads no payload.
func (q *queue) mixed() bool {
	first := q.all[0].Exchange
	for _, rec := range q.all[1:] {
		x := rec.Exchange
		if x.URL != first.URL || !samePayload(x.RequestPayload, first.RequestPayload) ||
			!slices.Equal(x.RequestHeaders, first.RequestHeaders) {
			return true
		}
	}
	return false
}

func samePayload(p, q *tape.Payload) bool {
	if p == nil || q == nil {
		return p == q
	}
	return p.Hash == q.Hash
}

// study finds out what tells the records of the queue apart. traits reads those of one.
func (q *queue) study(traits func(*Recorded) *Traits) {
	q.studied.Do(func() {
		index := make(map[trait][]*Recorded)
		for _, rec := range q.all {
			rec.traits = traits(rec)
			rec.has = make(map[trait]bool)
			for _, id := range rec.traits.IDs {
				rec.has[trait{id: true, text: id}] = true
			}
			for _, text := range rec.traits.Texts {
				rec.has[trait{text: text}] = true
			}
			for t := range rec.has {
				index[t] = append(index[t], rec)
			}
		}
		for t, having := range index {
			if len(having) == len(q.all) {
				delete(index, t)
			}
		}
		if len(index) > 0 {
			q.apart = index
		}
	})
}

// take returns the exchange that is most like what is asked of those that are not in served, of equally like ones the
// first; nil where there is none. asked is nil for a request of which nothing is known but its key.
func (q *queue) take(asked *Traits, n *names, served map[*Recorded]bool) *Recorded {
	q.waiting = unserved(q.waiting, served)
	switch {
	case len(q.waiting) == 0:
		return nil
	case asked == nil || q.apart == nil:
		return q.waiting[0]
	}
	s := q.seek(asked, n)
	if rec := q.likest(s, served); rec != nil {
		return rec
	}
	for _, rec := range q.waiting {
		if !served[rec] && s.foreign(rec) == 0 {
			return rec
		}
	}
	return q.waiting[0]
}

// likest returns the first of those that have most of what is sought; nil where none has more of it than of another's.
func (q *queue) likest(s *sought, served map[*Recorded]bool) *Recorded {
	var best *Recorded
	most := 0
	for _, t := range s.wanted {
		q.apart[t] = unserved(q.apart[t], served)
		for _, rec := range q.apart[t] {
			if served[rec] {
				continue
			}
			n := s.likeness(rec)
			if n == s.full {
				return rec // it stands in the lists of all that is wanted, and first in this one
			}
			if n > most || n == most && best != nil && before(rec, best) {
				best, most = rec, n
			}
		}
	}
	return best
}

// before reports whether x arrived before y.
func before(x, y *Recorded) bool {
	return x.Arrival < y.Arrival || x.Arrival == y.Arrival && x.Seq < y.Seq
}

// unserved cuts what is in served off the front of a queue.
func unserved(queue []*Recorded, served map[*Recorded]bool) []*Recorded {
	for len(queue) > 0 && served[queue[0]] {
		queue = queue[1:]
	}
	return queue
}
