package fidelity

import (
	"fmt"
	"iter"
	"sync"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Records is what a tape yields: its records in order, or an error that ends it. Every record must stay as it is after the
// next one was yielded.
type Records = iter.Seq2[*tape.Record, error]

// A Side says which of two tapes a thing stands on.
type Side uint8

// The sides.
const (
	Recorded Side = iota
	Replay
)

// String returns "recorded" or "replay".
func (s Side) String() string {
	if s == Replay {
		return "replay"
	}
	return "recorded"
}

// batchSize is how many records of a side are handed over at once; aheadBatches how many such are read ahead.
const (
	batchSize    = 128
	aheadBatches = 4
)

// readBoth reads two tapes side by side, each in a goroutine of its own, and calls fn for every record, in turns, in its
// own goroutine. Both have ended when it returns. names are what an error calls them.
func readBoth(names sideNames, recorded, replay Records, fn func(Side, *tape.Record)) error {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	defer wg.Wait() // after stop was closed
	defer close(stop)
	var sides [2]cursor
	for s, records := range [2]Records{recorded, replay} {
		ch := make(chan batch, aheadBatches)
		sides[s] = cursor{name: names.tape(Side(s)), in: ch}
		wg.Go(func() { readAhead(records, ch, stop) })
	}
	for !sides[Recorded].ended || !sides[Replay].ended {
		for s := range sides {
			rec, err := sides[s].next()
			if err != nil {
				return err
			}
			if rec != nil {
				fn(Side(s), rec)
			}
		}
	}
	return nil
}

// A batch is some records of a tape, and what ended it.
type batch struct {
	records []*tape.Record
	err     error
}

// readAhead reads a tape until its end, its error or stop, and closes out.
func readAhead(records Records, out chan<- batch, stop <-chan struct{}) {
	defer close(out)
	b := batch{records: make([]*tape.Record, 0, batchSize)}
	send := func() bool {
		select {
		case out <- b:
		case <-stop:
			return false
		}
		b.records = make([]*tape.Record, 0, batchSize)
		return true
	}
	for rec, err := range records {
		if b.err = err; err != nil {
			break
		}
		if b.records = append(b.records, rec); len(b.records) == batchSize && !send() {
			return
		}
	}
	send()
}

// A cursor is one side that is being read.
type cursor struct {
	name  string
	in    <-chan batch
	b     batch
	at    int
	ended bool
}

// next returns the next record; nil at the end, and after it.
func (c *cursor) next() (*tape.Record, error) {
	for !c.ended && c.at == len(c.b.records) {
		if c.b.err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, c.b.err)
		}
		var more bool
		c.b, more = <-c.in
		c.at, c.ended = 0, !more
	}
	if c.ended {
		return nil, nil
	}
	c.at++
	return c.b.records[c.at-1], nil
}
