package follow

import (
	"iter"
	"math"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An Item is one thing of a timeline: a record of the tape or, where that is nil, what the terminal showed or was given.
type Item struct {
	Record *tape.Record
	Screen *screen.Change
}

// Timeline is Of with what a terminal showed and was given in its place among the records.
func (f *Filter) Timeline(records iter.Seq2[*tape.Record, error], store cas.Store, changes iter.Seq2[*screen.Change, error]) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last := Last[Item]{Size: f.Tail}
		put := func(it Item) bool {
			if last.Size > 0 {
				last.Add(it)
				return true
			}
			return yield(it, nil)
		}
		if !f.merged(records, store, changes, put, func(err error) { yield(Item{}, err) }) {
			return
		}
		for _, it := range last.All() {
			if !yield(it, nil) {
				return
			}
		}
	}
}

// merged puts what f chooses, in order, and reports whether it came to the end.
func (f *Filter) merged(records iter.Seq2[*tape.Record, error], store cas.Store, changes iter.Seq2[*screen.Change, error],
	put func(Item) bool, fail func(error)) bool {
	s := &screenQueue{f: f, more: func() (*screen.Change, error, bool) { return nil, nil, false }}
	if f.WantsScreens() {
		more, stop := iter.Pull2(changes)
		defer stop()
		s.more = more
	}
	if f.lanes == nil {
		f.lanes = new(fidelity.SocketLanes) // which f and its copy share
	}
	whole := *f
	whole.Tail = 0
	for rec, err := range whole.Of(records, store) {
		if err == nil && rec.G > 0 {
			err = s.until(rec.G, put)
		}
		if err != nil {
			fail(err)
			return false
		}
		if s.stopped || !put(Item{Record: rec}) {
			return false
		}
	}
	f.seen = whole.seen
	if err := s.until(math.MaxUint64, put); err != nil {
		fail(err)
		return false
	}
	return !s.stopped
}

// A screenQueue gives changes of screens up to an ordinal.
type screenQueue struct {
	f       *Filter
	more    func() (*screen.Change, error, bool)
	next    *screen.Change
	stopped bool
}

func (q *screenQueue) until(g uint64, put func(Item) bool) error {
	for !q.stopped {
		if q.next == nil {
			c, err, ok := q.more()
			if !ok || err != nil {
				return err
			}
			q.next = c
		}
		if q.next.G > g {
			return nil
		}
		c := q.next
		q.next = nil
		if q.f.WantsScreen(c) {
			q.f.see(screen.KindScreen)
			q.stopped = !put(Item{Screen: c})
		}
	}
	return nil
}
