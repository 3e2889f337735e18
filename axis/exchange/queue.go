package exchange

import (
	"cmp"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

type (
	// Traits tell requests of one Key apart.
	Traits = lane.Traits
	// An ID is one of them.
	ID = lane.ID
)

// queue is the recorded exchanges of one key, by arrival.
type queue struct {
	lane.Queue[*Recorded]
	asked int
}

func newQueue() *queue { return &queue{Queue: lane.Queue[*Recorded]{Order: byArrival}} }

// byArrival orders records as their requests came.
func byArrival(x, y *Recorded) int {
	return cmp.Or(cmp.Compare(x.Arrival, y.Arrival), cmp.Compare(x.Seq, y.Seq))
}

// before reports whether x arrived before y.
func before(x, y *Recorded) bool { return byArrival(x, y) < 0 }

// mixed reports whether the requests of the queue may have unlike traits. It reads no payload.
func (q *queue) mixed() bool {
	first := q.All[0].Exchange
	for _, rec := range q.All[1:] {
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
	for _, rec := range q.All { // by arrival
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
