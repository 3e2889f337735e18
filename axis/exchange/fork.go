package exchange

import (
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Fork is the point at which a run leaves the tape that a Book holds: one recorded exchange, and with it all that arrived later.
//
// Until the run is there the Book answers, and what it does not answer is a divergence: from then on the Fork is lost, and nothing
// goes on. The run is there when the conversation (or host) of the exchange, which has asked for all that it had asked before, asks for
// something that stands before no point: nobody else takes it there, not one of the same opening either. Others that have come further by then are answered from behind the point. What is asked
// later is answered by what was recorded before the point and not yet asked for, and else it is past the point. What a tool server asks that
// runs takes the run neither there nor elsewhere.
//
// It may be used by several goroutines at once.
type Fork struct {
	book *Book
	at   *Recorded
	o    ForkOptions

	mu       sync.Mutex // guards what follows
	past     bool
	leftAt   uint64 // the recorder's ordinal at which it was, or diverged
	lost     string
	refused  []string        // method and URL
	answered map[uint64]bool // arrivals of requests that were answered by what was recorded before the point, or diverged
}

// ForkOptions say how a Fork works. The zero value works.
type ForkOptions struct {
	// Kept says which requests are answered from the tape alone, before the point and past it; nil says it of none.
	Kept func(*Request) bool
	// Leaves says which requests the tape does not answer past the point, whatever it has left, and Kept or not. It is given the request as
	// the program sent it, where conversations are followed. Nil says it of none.
	Leaves func(*Request) bool
	// Closed says that past the point too all that fits is answered from the tape, but for the exchange at the point.
	Closed bool
	// Passing is told that the run is there, before anything past the point is answered; nil is nobody.
	Passing func()
}

// A Place says where a request stands that no recorded exchange before a Fork's point answers.
type Place uint8

// The places of a request.
const (
	OnTape Place = iota // a recorded exchange answers it
	Before              // the run is not at the point yet: it diverged, unless Kept or a host that was silent is asked, or a tool server asks
	At                  // the first one of the conversation that is forked; it has its lane
	Past                // any other
)

// Lost says why the run diverged before the point; "" where it did not.
func (f *Fork) Lost() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Before reports whether a record stands before the point: of the tape, where recorded is set, else of the run's own.
func (f *Fork) Before(r *tape.Record, recorded bool) bool {
	x := tape.ExchangeOf(r.Kind)
	if call, ok := r.Kind.(*tape.LLMCall); ok && call.Connection != 0 {
		x = nil // its arrival is that of no request
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case recorded && x != nil:
		return x.Arrival < f.at.Arrival
	case recorded:
		return r.G < f.at.answeredAt()
	case x != nil:
		return f.answered[x.Arrival]
	}
	return f.leftAt == 0 || r.G < f.leftAt
}

// CameMS is when the request at the point had come, in Unix epoch ms; 0 where the tape does not tell.
func (f *Fork) CameMS() int64 {
	if f.at.wallMS == 0 {
		return 0
	}
	return f.at.wallMS - (f.at.endedMS - f.at.begun())
}

// Past reports whether the run has come to the point.
func (f *Fork) Past() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.past
}

// sends reports whether what the tape does not answer is sent on.
func (f *Fork) sends() bool { return f != nil && !f.o.Closed && f.Past() }

// Own reports whether a lane is the conversation that is forked.
func (f *Fork) Own(lane string) bool { return lane == f.at.Lane }

// Take is Open.Take from the Book that the Fork divides. A request that is Past may be sent on (SendOn).
func (f *Fork) Take(o *Open) (*Recorded, Place) {
	if f.Past() && f.o.Leaves != nil && o.asked != nil && f.o.Leaves(o.asked) {
		return nil, Past
	}
	rec, ok := o.arriveAt(f.book)
	if !ok {
		if rec = f.ahead(o.key); rec == nil {
			rec = f.book.likeAsked(o.Identity(), o.request)
		}
	}
	place := OnTape
	if rec == nil {
		place = f.placeOf(o)
	}
	if place == Past && f.o.Closed {
		if rec, _ = o.arriveAt(f.book); rec != nil {
			place = OnTape
		}
	}
	if rec != nil {
		if before(rec, f.at) {
			f.mu.Lock()
			f.answered[o.exchange.Arrival] = true
			f.mu.Unlock()
		}
		o.takes(f.book, rec)
	}
	return rec, place
}

// ahead hands out what a run asks for that has come past the point on another way than that of the fork; nil for nothing.
func (f *Fork) ahead(k Key) *Recorded {
	if f.Past() {
		return nil
	}
	b := f.book
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queues[k]; q != nil {
		for _, rec := range q.All {
			if rec.held && rec.Lane != f.at.Lane {
				rec.held = false
				b.hand(rec, nil)
				return rec
			}
		}
	}
	return nil
}

// placeOf says where a request stands that nothing answers, and takes the run past the point with it.
func (f *Fork) placeOf(o *Open) Place {
	if f.o.Kept != nil && f.o.Kept(o.request) {
		return Before
	}
	own := f.goesOn(o)
	aside := f.book.DeadHost(tape.HostOf(o.request.URL)) || f.book.side.ignores(o.request)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.lost != "":
		return Before
	case !f.past && (aside || o.request.Asker != 0):
		return Before
	case !f.past && (!own || !f.reached()):
		_, f.lost = f.book.Nearest(o.Identity(), o.request)
		f.leftAt, f.answered[o.exchange.Arrival] = o.tap.rec.Ordinal(), true
		return Before
	case !f.past:
		f.past, f.leftAt = true, o.tap.rec.Ordinal()
		o.tap.lanes.beginAs(f.at.Lane, o.Identity())
		o.given, o.exchange.Lane = f.at.Lane, f.at.Lane
		f.book.order.giveUp()
		if f.o.Closed {
			f.release()
		}
		if f.o.Passing != nil {
			f.o.Passing()
		}
		return At
	}
	return Past
}

// goesOn reports whether a request asks what the exchange at the point did, or goes on what had asked for that.
func (f *Fork) goesOn(o *Open) bool {
	if o.key.Kind != LLM {
		return f.Own("http:" + tape.HostOf(o.request.URL))
	}
	opening, _, _ := strings.Cut(f.at.Lane, "#")
	return o.key == f.at.Key ||
		opening == lanePrefix(o.Identity().Talk().Opening) && o.tap.lanes.goesOn(f.at.Lane, o.Identity())
}

// reached reports whether the conversation that is forked has asked for all that comes before the point.
func (f *Fork) reached() bool {
	f.book.mu.Lock()
	defer f.book.mu.Unlock()
	for _, rec := range f.book.recorded {
		if f.Own(rec.Lane) && !rec.Served && !isNote(rec) {
			return false
		}
	}
	return true
}

// release has what was held answer, but for the exchange at the point.
func (f *Fork) release() {
	b := f.book
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rec := range b.recorded {
		if rec.held && rec != f.at {
			rec.held, rec.Served = false, false
			b.queues[rec.Key].GiveBack(rec)
		}
	}
}

// Refuse is SendOn for a request past the point that gets a refusal: that is an answer, which a replay of the fork gives again.
func (f *Fork) Refuse(o *Open) error {
	err := o.SendOn()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = append(f.refused, o.exchange.Method+" "+o.exchange.URL)
	return err
}

// Refused lists what got such a refusal.
func (f *Fork) Refused() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.refused)
}
