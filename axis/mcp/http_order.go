package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A webOrder keeps what the server says in a replayed conversation in its place, whatever streams it comes on: the exchanges, by their
// recorded arrival.
type webOrder struct {
	*lane.Order[tapedLine]

	mu   sync.Mutex
	told time.Time // when a line of the server passed last that is no answer
	tale int64     // when it had, in ms of the recording
}

// newWebOrder returns the order of lines, which stand by their places.
func newWebOrder(lines []tapedLine) *webOrder {
	out := make([]lane.Line[tapedLine], len(lines))
	for i, l := range lines {
		out[i] = lane.Line[tapedLine]{Place: l.place, MS: l.ms, Counts: l.counts, Value: l}
		if l.from == Server {
			out[i].From, out[i].Stream = lane.Far, l.exchange
		}
	}
	return &webOrder{Order: lane.NewOrder(out, holdAsked, nil)}
}

// begin notes that a recorded exchange is under way again: the lines of the client in it have come.
func (o *webOrder) begin(exchange uint64, c *carried) {
	o.Open(exchange)
	o.Done(o.indexes(c.client)...)
}

// end notes that an exchange is over: what it would have carried does not come.
func (o *webOrder) end(exchange uint64, c *carried) {
	o.Close(exchange)
	o.Done(o.indexes(c.server)...)
}

// indexes are the lines at places.
func (o *webOrder) indexes(places []uint64) (lines []int) {
	for _, p := range places {
		if i, ok := o.At(p); ok {
			lines = append(lines, i)
		}
	}
	return lines
}

// said notes that the line at place has been passed on.
func (o *webOrder) said(place uint64) {
	i, ok := o.At(place)
	if !ok {
		return
	}
	o.Done(i)
	if l := &o.Lines()[i].Value; !l.answer {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.told, o.tale = time.Now(), l.ms
	}
}

// await waits until the line at place, which an exchange carries, is due: what that carries before it passes before it anyway. The
// error is ctx's.
func (o *webOrder) await(ctx context.Context, place, exchange uint64) error {
	i, ok := o.At(place)
	if !ok {
		return nil
	}
	l := &o.Lines()[i].Value
	if err := o.Await(ctx, i, exchange, l.ms); err != nil {
		return err
	}
	return lane.Pause(ctx, nil, o.unread(l))
}

// unread is how long a line is still held because of what passed just before: some times as long as it came after that, for the
// rest of the machine does not go faster.
func (o *webOrder) unread(l *tapedLine) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !l.answer || o.told.IsZero() {
		return 0
	}
	return min(reading, 5*time.Millisecond+4*lane.Between(o.tale, l.ms)) - time.Since(o.told)
}

// awaitEnd waits, for as long as it takes, until what had come when an exchange ended has come.
func (o *webOrder) awaitEnd(ctx context.Context, last, exchange uint64) error {
	i, _ := o.At(last + 1)
	return o.AwaitAll(ctx, i, exchange)
}
