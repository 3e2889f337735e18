package exchange

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxTried is how many records at most are tried for one request that none fits in all that sets some apart.
const maxTried = 256

// queue is the recorded exchanges of one key, by arrival. What was handed out may still stand in waiting, or in apart, until
// it is come upon there.
type queue struct {
	all     []*Recorded
	waiting []*Recorded
	asked   int
	studied sync.Once
	// sideBySide says that some of all were under way together while recording; not changed after NewBook.
	sideBySide bool
	apart      map[trait][]*Recorded // by what some of all have and some have not; nil before study, and where all are alike
}

func (q *queue) add(rec *Recorded) {
	q.all = append(q.all, rec)
	q.waiting = append(q.waiting, rec)
}

// mixed reports whether the requests of the queue may have unlike traits. It reads no payload.
func (q *queue) mixed() bool {
	first := q.all[0].Exchange
	for _, rec := range q.all[1:] {
		x := rec.Exchange
		if x.URL != first.URL || !x.RequestPayload.Same(first.RequestPayload) ||
			!slices.Equal(x.RequestHeaders, first.RequestHeaders) {
			return true
		}
	}
	return false
}

// overlap reports whether some of the requests were under way together: one arrived later than another and ended before it, or
// before it ended, as far as the tape tells.
func (q *queue) overlap() bool {
	var lastG uint64
	var lastEnd int64
	for _, rec := range q.all { // by arrival
		first := rec.g
		if chunks := rec.Exchange.Stream; len(chunks) > 0 {
			first = chunks[0].G
		}
		if first < lastG || rec.begun() < lastEnd {
			return true
		}
		lastG, lastEnd = max(lastG, rec.g), max(lastEnd, rec.endedMS)
		if s := rec.Socket; s != nil && s.ended {
			lastG, lastEnd = max(lastG, s.end.At), max(lastEnd, s.endMS)
		}
	}
	return false
}

// study finds out what tells the records of the queue apart. traits reads those of one.
func (q *queue) study(traits func(*Recorded) *Traits) {
	q.studied.Do(func() {
		index := make(map[trait][]*Recorded)
		for _, rec := range q.all {
			rec.traits = traits(rec)
			for t := range rec.traits.set() {
				if t.kind != saidText || q.sideBySide {
					index[t] = append(index[t], rec)
				}
			}
		}
		for t, having := range index {
			if len(having) == len(q.all) {
				delete(index, t)
			}
		}
		if len(index) == 0 {
			return
		}
		q.apart = index
		for _, rec := range q.all {
			rec.own = rec.traits.set()
			maps.DeleteFunc(rec.own, func(t trait, _ bool) bool { return index[t] == nil })
		}
	})
}

// take returns the exchange that is most like what is asked of those that were not handed out, of equally like ones the
// first; nil where there is none. asked is nil for a request of which nothing is known but its key.
func (q *queue) take(asked *Traits, ids *lane.Names) *Recorded {
	q.waiting = unserved(q.waiting)
	switch {
	case len(q.waiting) == 0:
		return nil
	case asked == nil || q.apart == nil:
		return q.waiting[0]
	}
	s := q.expect(asked, ids)
	if rec := q.likest(s); rec != nil {
		return rec
	}
	first, tried := q.waiting[0], 0
	q.waiting = pass(q.waiting, func(rec *Recorded) bool {
		tried++
		own := s.foreign(rec) == 0
		if own {
			first = rec
		}
		return !own && tried < maxTried
	})
	return first
}

// giveBack takes back what was handed out.
func (q *queue) giveBack(rec *Recorded) {
	q.waiting = insert(q.waiting, rec)
	for t := range rec.own {
		q.apart[t] = insert(q.apart[t], rec)
	}
}

// insert puts a record where it belongs in a list by arrival, unless it is still there.
func insert(list []*Recorded, rec *Recorded) []*Recorded {
	i, _ := slices.BinarySearchFunc(list, rec, func(x, y *Recorded) int {
		return cmp.Or(cmp.Compare(x.Arrival, y.Arrival), cmp.Compare(x.Seq, y.Seq))
	})
	if i < len(list) && list[i] == rec {
		return list
	}
	return slices.Insert(slices.Clip(list), i, rec)
}

// likest returns the first of those that have most of what is expected; nil where none has more of it than of another's.
func (q *queue) likest(s *expected) *Recorded {
	var best *Recorded
	most, tried := 0, 0
	for _, t := range s.wanted {
		q.apart[t] = pass(q.apart[t], func(rec *Recorded) bool {
			n := s.likeness(rec)
			if n > most || n == most && best != nil && before(rec, best) {
				best, most = rec, n
			}
			tried++
			return n < s.full && tried < maxTried
		})
		if most == s.full || tried >= maxTried {
			break // who has all that is wanted stands in each of the lists, the first such one first
		}
	}
	return best
}

// before reports whether x arrived before y.
func before(x, y *Recorded) bool {
	return x.Arrival < y.Arrival || x.Arrival == y.Arrival && x.Seq < y.Seq
}

// unserved cuts what was handed out off the front of a list.
func unserved(list []*Recorded) []*Recorded {
	for len(list) > 0 && list[0].served {
		list = list[1:]
	}
	return list
}

// pass shows the records of a list that were not handed out, until more says that it has seen enough. What was handed out it
// takes out of the part that it passes, so that nothing is passed twice.
func pass(list []*Recorded, more func(*Recorded) bool) []*Recorded {
	kept, passed := 0, 0
	for goOn := true; goOn && passed < len(list); passed++ {
		rec := list[passed]
		if rec.served {
			continue
		}
		list[kept] = rec
		kept++
		goOn = more(rec)
	}
	copy(list[passed-kept:passed], list[:kept])
	return list[passed-kept:]
}

// A Search looks for what a Scrubber knows in what was recorded. A blob that many records name is read once, as long as
// nothing is found in it. It is for one goroutine.
type Search struct {
	store cas.Store
	find  *scrub.Scrubber
	clean map[reading]bool
}

// A reading is a blob, and how it is read.
type reading struct {
	hash     cas.Digest
	encoding string
	request  bool
	cut      bool
}

// NewSearch returns a Search for what find knows, in records whose blobs are in store.
func NewSearch(store cas.Store, find *scrub.Scrubber) *Search {
	return &Search{store: store, find: find, clean: make(map[reading]bool)}
}

// Holds reports whether the exchange of r holds something: in a string, in a body, or in what a body decodes to. The errors
// are those of the store.
func (s *Search) Holds(r *tape.Record) (bool, error) {
	restoreHeaders(r)
	x := tape.ExchangeOf(r.Kind)
	for _, p := range tape.Strings(r.Kind) {
		if s.find.String(*p) != *p {
			return true, nil
		}
	}
	for _, f := range *tape.Extras(r.Kind) {
		if _, found := s.find.Bytes(f.Value); found {
			return true, nil
		}
	}
	if found, err := s.request(x); found || err != nil {
		return found, err
	}
	return s.response(x)
}

// Payload reports whether the bytes of p hold something. The errors are those of the store.
func (s *Search) Payload(p *tape.Payload) (bool, error) {
	return s.once(p, reading{}, func() (bool, error) {
		r, err := p.Open(s.store)
		if err != nil {
			return false, err
		}
		defer r.Close()
		w := s.find.Writer(io.Discard)
		_, err = io.Copy(w, r)
		err = errors.Join(err, w.Close())
		return w.Found(), err
	})
}

// once does look unless it found nothing in p before, read in that way.
func (s *Search) once(p *tape.Payload, as reading, look func() (bool, error)) (bool, error) {
	as.hash = p.Hash
	if !p.Inline && s.clean[as] {
		return false, nil
	}
	found, err := look()
	if !p.Inline && !found && err == nil {
		s.clean[as] = true
	}
	return found, err
}

func (s *Search) request(x *tape.Exchange) (bool, error) {
	if x.RequestPayload == nil {
		return false, nil
	}
	encoding := HeaderOf(x.RequestHeaders).Get("Content-Encoding")
	return s.once(x.RequestPayload, reading{request: true, encoding: encoding}, func() (bool, error) {
		b, err := x.RequestPayload.Bytes(s.store)
		if err != nil {
			return false, err
		}
		// One that does not decode was not kept.
		if plain, err := Decode(encoding, b, DefaultMaxBody); err == nil {
			b = plain
		}
		_, found := s.find.Bytes(b)
		return found, nil
	})
}

func (s *Search) response(x *tape.Exchange) (bool, error) {
	if x.Response == nil {
		return false, nil
	}
	encoding := HeaderOf(x.ResponseHeaders).Get("Content-Encoding")
	if !encoded(encoding) {
		return s.Payload(x.Response)
	}
	cut := x.Error != ""
	return s.once(x.Response, reading{encoding: encoding, cut: cut}, func() (bool, error) {
		b, err := x.Response.Bytes(s.store)
		if err != nil || len(b) == 0 {
			return false, err
		}
		answer := &packedBody{scrubber: s.find, encoding: encoding, limit: DefaultMaxBody, raw: b}
		answer.at.add(tape.Chunk{}, len(b))
		return answer.scan(cut)
	})
}
