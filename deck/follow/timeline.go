package follow

import (
	"errors"
	"iter"
	"math"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An Item is one thing of a timeline: a record of the tape or, where that is nil, what the terminal showed or was given.
type Item struct {
	Record *tape.Record
	Screen *screen.Change
}

// Timeline yields those of records, whose payloads are in store, that f chooses, with what a terminal showed and was given in its place among
// them. With Tail it holds so many, else one. Behind the last record that First and Last name it reads no further where they name one.
func (f *Filter) Timeline(records iter.Seq2[*tape.Record, error], store cas.Store, changes iter.Seq2[*screen.Change, error]) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last := Last[Item]{Size: f.Tail}
		put := func(it Item) error {
			if last.Size > 0 {
				last.Add(it)
			} else if !yield(it, nil) {
				return errEnough
			}
			return nil
		}
		switch err := f.merged(records, store, changes, put); {
		case errors.Is(err, errEnough):
			return
		case err != nil:
			yield(Item{}, err)
			return
		}
		for _, it := range last.All() {
			if !yield(it, nil) {
				return
			}
		}
	}
}

// errEnough ends a timeline that nobody reads any more.
var errEnough = errors.New("enough")

// merged puts what f chooses, in order. The error is that of records, of changes, or put's.
func (f *Filter) merged(records iter.Seq2[*tape.Record, error], store cas.Store, changes iter.Seq2[*screen.Change, error], put func(Item) error) error {
	s := &screenQueue{f: f, more: func() (*screen.Change, error, bool) { return nil, nil, false }}
	if changes != nil && f.WantsScreens() {
		more, stop := iter.Pull2(changes)
		defer stop()
		s.more = more
	}
	for rec, err := range records {
		var want bool
		if err == nil {
			want, err = f.Wants(rec, store)
		}
		if err == nil && want && rec.G > 0 {
			err = s.until(rec.G, put)
		}
		if err == nil && want {
			err = put(Item{Record: rec})
		}
		if err != nil {
			return err
		}
		if f.First == f.Last && rec.Seq == f.Last {
			break
		}
	}
	return s.until(math.MaxUint64, put)
}

// A screenQueue gives changes of screens up to an ordinal.
type screenQueue struct {
	f    *Filter
	more func() (*screen.Change, error, bool)
	next *screen.Change
}

func (q *screenQueue) until(g uint64, put func(Item) error) error {
	for {
		if q.next == nil {
			c, err, ok := q.more()
			if !ok || err != nil {
				return err
			}
			q.next = c
		}
		c := q.next
		if c.G > g {
			return nil
		}
		q.next = nil
		if !q.f.WantsScreen(c) {
			continue
		}
		q.f.see(screen.KindScreen)
		if err := put(Item{Screen: c}); err != nil {
			return err
		}
	}
}
