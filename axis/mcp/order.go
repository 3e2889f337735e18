package mcp

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// An order keeps what several servers answer at once in the order in which it passed while recording: a program may act on whichever
// answer it sees first. An answer waits until every earlier one of another conversation has gone out and its client has read it. Those
// that are late hold it up together, and once, for as long as it took then from its request on and hold: a program may talk with
// fewer servers now. Its methods may be called by several goroutines at once.
type order struct {
	hold time.Duration // not changed once it is used

	mu      sync.Mutex
	left    map[*recordedTalk][]orderedLine // that have not gone out, in recorded order; of those that are waited for
	changed chan struct{}                   // closed when left changes, and then another

	out lastOut
}

// An orderedLine is one line of a server.
type orderedLine struct {
	seq uint64 // of its record
	at  int64  // ms of the recording
}

// newOrder returns the order of the lines of talks that hold an answer; what may come as often as it likes has no place in it, and of
// what a server asked the tape tells when it was answered, not when it was asked.
func newOrder(talks []*recordedTalk) *order {
	o := &order{hold: holdAsked, left: make(map[*recordedTalk][]orderedLine), changed: make(chan struct{})}
	for _, t := range talks {
		if t.Transport != Stdio || t.Within != 0 {
			continue // what carried it keeps it in order; or nobody comes with it
		}
		for _, l := range t.lines {
			if l.ordered() {
				o.left[t] = append(o.left[t], orderedLine{l.seq, l.at})
			}
		}
		slices.SortFunc(o.left[t], func(a, b orderedLine) int { return cmp.Compare(a.seq, b.seq) })
	}
	return o
}

// ordered reports whether a line has a place among those of other conversations.
func (l *bookLine) ordered() bool {
	for i := range l.parts {
		if p := &l.parts[i]; p.answer && p.call.method != "ping" {
			return true
		}
	}
	return false
}

// asked is when the last request that l answers came, in ms of the recording.
func (l *bookLine) asked() (at int64) {
	for i := range l.parts {
		if p := &l.parts[i]; p.answer {
			at = max(at, p.call.at)
		}
	}
	return at
}

// wait returns when it is l's turn, which t says.
func (o *order) wait(ctx context.Context, t *recordedTalk, l *bookLine) {
	if !l.ordered() {
		return
	}
	_ = held(ctx, func() (changed <-chan struct{}, left time.Duration) {
		until, changed := o.before(t, l)
		return changed, recordedFor(l.asked(), until) + o.hold // anew when the others go on
	}, func() { o.giveUp(t, l) }) // who writes finds the context done, too
}

// before returns what is closed when a conversation goes on, and when the last of those that have a line before l wrote that while
// recording; nil where none has.
func (o *order) before(t *recordedTalk, l *bookLine) (until int64, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other, left := range o.left {
		if other != t && holdUp(left, l) {
			until, changed = max(until, left[0].at), o.changed
		}
	}
	return until, changed
}

// holdUp reports whether a line of left stands before l.
func holdUp(left []orderedLine, l *bookLine) bool { return len(left) > 0 && left[0].seq < l.seq }

// giveUp waits no more for the conversations that have a line before l.
func (o *order) giveUp(t *recordedTalk, l *bookLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.left, func(other *recordedTalk, left []orderedLine) bool { return other != t && holdUp(left, l) })
	o.tell()
}

// wrote says that l went out, or never will, and with it every line before.
func (o *order) wrote(t *recordedTalk, l *bookLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	left := o.left[t]
	for len(left) > 0 && left[0].seq <= l.seq {
		left = left[1:]
	}
	if len(left) != len(o.left[t]) {
		o.left[t] = left
		o.tell()
	}
}

// end says that t is not waited for any more.
func (o *order) end(t *recordedTalk) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.left[t]) > 0 {
		delete(o.left, t)
		o.tell()
	}
}

// tell wakes who waits. o.mu is held.
func (o *order) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// A lastOut is where something went out last, of all conversations of a run: what goes out elsewhere waits until that was read.
type lastOut struct {
	mu sync.Mutex
	f  *os.File
}

// turn waits until what went out last elsewhere was read. The next turn is out's.
func (l *lastOut) turn(out *os.File) {
	l.mu.Lock()
	last := l.f
	l.f = out
	l.mu.Unlock()
	if last != nil && last != out {
		settle(last, settleFor)
	}
}
