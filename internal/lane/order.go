package lane

import (
	"context"
	"sync"
	"time"
)

// A Side is one of the two of a conversation.
type Side uint8

// The sides.
const (
	Program Side = iota // is run again
	Far                 // is answered from the tape
)

// A Line is one message of a recorded conversation. V is what a codec knows of it.
type Line[V any] struct {
	Place  uint64 // lines stand in the order of their places; equal ones as they were given
	MS     int64  // when it passed, in ms of the recording
	From   Side
	Stream uint64 // of the far side: what carried it

	// Counts says of a line of the program that what the far side says behind it waits for it.
	Counts bool
	// Within is how long a line of the program is waited for, from what came before it; 0 is for as long as it took while recording, and
	// the slack of the Order.
	Within time.Duration
	// Owners are the lines of the program, by index, to which a line of the far side belongs: it is said once one of them has come.
	// Without any it comes unasked.
	Owners []int

	Value V
}

// An Order keeps lines in their recorded order. Its methods may be called by several goroutines at once.
type Order[V any] struct {
	clock Clock
	slack time.Duration
	lines []Line[V]

	mu      sync.Mutex // guards what follows
	done    []bool     // come, said, or given up
	first   int        // no line before it is waited for
	open    map[uint64]bool
	last    time.Time // when a line was done last
	changed Change
}

// NewOrder returns the order of lines. What does not come holds the others up for slack longer than it took while recording. A nil
// clock is the real one.
func NewOrder[V any](lines []Line[V], slack time.Duration, clock Clock) *Order[V] {
	return &Order[V]{
		clock: clockOr(clock), slack: slack, lines: lines, done: make([]bool, len(lines)), open: make(map[uint64]bool),
	}
}

// Lines are the lines of the order. They do not change.
func (o *Order[V]) Lines() []Line[V] { return o.lines }

// Open says that a stream is under way, so that lines of others wait for its.
func (o *Order[V]) Open(streams ...uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range streams {
		o.open[s] = true
	}
}

// Close says that a stream is over: none of its lines is waited for any more.
func (o *Order[V]) Close(stream uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[stream] {
		delete(o.open, stream)
		o.changed.Happened()
	}
}

// Passed says that a line of the far side has been said, or never will be, and with it every line before it on its stream.
func (o *Order[V]) Passed(i int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for m := i - 1; m >= o.first; m-- {
		if l := &o.lines[m]; l.From == Far && l.Stream == o.lines[i].Stream {
			o.done[m] = true
		}
	}
	o.mark(i)
}

// mark notes of lines that they have come or have been said. mu is held.
func (o *Order[V]) mark(lines ...int) {
	for _, i := range lines {
		o.done[i] = true
	}
	o.last = o.clock.Now()
	o.forward()
	o.changed.Happened()
}

// forward passes what is done, or is never waited for. mu is held.
func (o *Order[V]) forward() {
	for o.first < len(o.lines) && (o.done[o.first] || o.lines[o.first].From == Program && !o.lines[o.first].Counts) {
		o.first++
	}
}

// Await waits until a line is due that stream brings: what that brings before it is its own affair. i is its index, askedMS when its
// request came while recording. The error is ctx's.
func (o *Order[V]) Await(ctx context.Context, i int, stream uint64, askedMS int64) error {
	begun := o.clock.Now()
	return Hold(ctx, o.clock, func() (<-chan struct{}, time.Duration) {
		o.mu.Lock()
		defer o.mu.Unlock()
		m := o.missing(i, stream)
		if m < 0 {
			return nil, 0
		}
		return o.changed.Next(), o.deadline(m, begun, askedMS, o.slack).Sub(o.clock.Now())
	}, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.giveUp(i, stream)
	})
}

// AwaitAll waits, for as long as it takes, until a line would be due for stream. The error is ctx's.
func (o *Order[V]) AwaitAll(ctx context.Context, i int, stream uint64) error {
	return Hold(ctx, o.clock, func() (<-chan struct{}, time.Duration) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.missing(i, stream) < 0 {
			return nil, 0
		}
		return o.changed.Next(), Forever
	}, nil)
}

// missing is the first line that holds up the line i of a stream; -1 for none. mu is held.
func (o *Order[V]) missing(i int, stream uint64) int {
	for m := o.first; m < i; m++ {
		if o.holds(m, stream) {
			return m
		}
	}
	return -1
}

// holds reports whether what stands behind a line, on a stream, waits for it. mu is held.
func (o *Order[V]) holds(m int, stream uint64) bool {
	l := &o.lines[m]
	switch {
	case o.done[m]:
		return false
	case l.From == Program:
		return l.Counts
	}
	return l.Stream != stream && o.open[l.Stream]
}

// deadline is until when the line m is waited for by who has waited since begun, for what was asked for at askedMS while recording: for
// as long as it took then, from there or from what came before it, and for slack. mu is held.
func (o *Order[V]) deadline(m int, begun time.Time, askedMS int64, slack time.Duration) time.Time {
	l := &o.lines[m]
	if l.Within > 0 {
		return later(begun, o.last).Add(l.Within)
	}
	before := l.MS
	if m > 0 {
		before = o.lines[m-1].MS
	}
	took := Between(before, l.MS)
	return later(begun.Add(max(took, Between(askedMS, l.MS))), o.last.Add(took)).Add(slack)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// giveUp waits no more for what holds up the line i of a stream. mu is held.
func (o *Order[V]) giveUp(i int, stream uint64) {
	for m := o.first; m < min(i, len(o.lines)); m++ {
		if !o.holds(m, stream) {
			continue
		}
		if l := &o.lines[m]; l.From == Far {
			delete(o.open, l.Stream)
		}
		o.done[m] = true
	}
	o.mark()
}
