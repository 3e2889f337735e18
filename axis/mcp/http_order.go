package mcp

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A webOrder keeps what the server says in a replayed conversation in its place, whatever streams it comes on: a line is due when
// the client has sent what it had sent by then, and when what the server had said before on streams that are open has been said.
// A line that does not come holds the others up once, for as long as it took then and holdAsked.
type webOrder struct {
	lines []tapedLine

	mu    sync.Mutex
	done  []bool          // by index into lines: come, said, or given up
	first int             // the first line that is not done
	open  map[uint64]bool // exchanges under way, by their recorded arrival
	last  time.Time       // when a line was done last
	told  time.Time       // when a line of the server passed last that is no answer
	tale  int             // its index
	wake  chan struct{}   // closed at each change; nil while nobody waits
}

// newWebOrder returns the order of lines, which stand by their places.
func newWebOrder(lines []tapedLine) *webOrder {
	return &webOrder{lines: lines, done: make([]bool, len(lines)), open: make(map[uint64]bool)}
}

// begin notes that a recorded exchange is under way again: the lines of the client in it have come.
func (o *webOrder) begin(exchange uint64, c *carried) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[exchange] = true
	o.mark(c.client...)
}

// end notes that an exchange is over: what it would have carried does not come.
func (o *webOrder) end(exchange uint64, c *carried) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open, exchange)
	o.mark(c.server...)
}

// said notes that the line at place has been passed on.
func (o *webOrder) said(place uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark(place)
	if i, ok := o.find(place); ok && !o.lines[i].answer {
		o.told, o.tale = o.last, i
	}
}

// find returns the index of the line at place.
func (o *webOrder) find(place uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(o.lines, place, func(l tapedLine, p uint64) int { return cmp.Compare(l.place, p) })
}

// mark notes that the lines at places are done, and wakes who waits. The caller holds mu.
func (o *webOrder) mark(places ...uint64) {
	for _, p := range places {
		if i, ok := o.find(p); ok {
			o.done[i] = true
		}
	}
	for o.first < len(o.lines) && o.done[o.first] {
		o.first++
	}
	o.last = time.Now()
	if o.wake != nil {
		close(o.wake)
		o.wake = nil
	}
}

// await waits until the line at place, which an exchange carries, is due: what that carries before it passes before it anyway. The
// error is ctx's.
func (o *webOrder) await(ctx context.Context, place, exchange uint64) error {
	begun := time.Now()
	missing := func() (<-chan struct{}, time.Duration) { return o.missing(place, exchange, begun) }
	if err := held(ctx, missing, func() { o.giveUp(place) }); err != nil {
		return err
	}
	return pause(ctx, o.unread(place))
}

// unread is how long the line at place is still held because of what passed just before: some times as long as it came after that, for the
// rest of the machine does not go faster.
func (o *webOrder) unread(place uint64) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, ok := o.find(place)
	if !ok || !o.lines[i].answer || o.told.IsZero() {
		return 0
	}
	gap := recordedFor(o.lines[o.tale].ms, o.lines[i].ms)
	return min(reading, 5*time.Millisecond+4*gap) - time.Since(o.told)
}

// awaitEnd waits, for as long as it takes, until what had come when an exchange ended has come.
func (o *webOrder) awaitEnd(ctx context.Context, last, exchange uint64) error {
	return held(ctx, func() (<-chan struct{}, time.Duration) { return o.missing(last+1, exchange, time.Time{}) }, nil)
}

// missing returns what is closed when something changes, and how long is left to wait for it, by who waits since begun; nil where the
// line at place is due.
func (o *webOrder) missing(place, exchange uint64, begun time.Time) (wake <-chan struct{}, left time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := o.first; i < len(o.lines) && o.lines[i].place < place; i++ {
		if !o.holds(i, exchange) {
			continue
		}
		if o.wake == nil {
			o.wake = make(chan struct{})
		}
		took := time.Duration(0)
		if i > 0 {
			took = recordedFor(o.lines[i-1].ms, o.lines[i].ms)
		}
		if o.last.After(begun) {
			begun = o.last
		}
		return o.wake, max(took+holdAsked-time.Since(begun), 0)
	}
	return nil, 0
}

// holds reports whether what comes after the line i in an exchange waits for it. The caller holds mu.
func (o *webOrder) holds(i int, exchange uint64) bool {
	l := &o.lines[i]
	return !o.done[i] && (l.from == Client && l.counts || l.from == Server && l.exchange != exchange && o.open[l.exchange])
}

// giveUp waits no more for what stands before place.
func (o *webOrder) giveUp(place uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := o.first; i < len(o.lines) && o.lines[i].place < place; i++ {
		o.done[i] = true
	}
	o.mark()
}
