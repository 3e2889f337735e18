// Package arrival brings records that stand by their end into the order in which they were asked for.
//
// A command, a call of a model or a tool is recorded when its answer has come. What runs side by side ends in another order than it
// was asked for, and a replay answers in the order of asking. So a record says its place among what was asked for, from 1, but only
// where that is not the place at which it stands: what runs one after another says nothing, as the tapes of other producers do.
package arrival

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// A Counter counts what is asked for, and what of it is recorded. The zero value has counted nothing. It may be used by several
// goroutines at once.
type Counter struct{ asked, written atomic.Uint64 }

// Ask counts what is asked for, and returns its place, from 1.
func (c *Counter) Ask() uint64 { return c.asked.Add(1) }

// Write counts a record, that of what was asked for at a place. It returns what the record says of that: 0 where it stands there.
func (c *Counter) Write(place uint64) (said uint64) {
	if c.written.Add(1) == place {
		return 0
	}
	return place
}

// Sort brings records from the order in which they stand into that of asking. said is what a record says of its place; 0 is where it
// stands. Of several at one place the first stays first.
func Sort[R any](records []R, said func(R) uint64) {
	type placed struct {
		record R
		place  uint64
	}
	all := make([]placed, len(records))
	for i, r := range records {
		all[i] = placed{r, cmp.Or(said(r), uint64(i)+1)}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	for i := range all {
		records[i] = all[i].record
	}
}
