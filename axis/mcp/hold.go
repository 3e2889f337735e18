package mcp

import (
	"context"
	"time"
)

// How much longer than while recording a line of the server is held up by one that does not come.
const (
	holdAsked = 2 * time.Second  // where somebody waits for an answer
	holdFree  = 30 * time.Second // what nobody asked for: it does no harm that it waits
)

// reading is the most time that a client has to read a notification before the answer that comes apart from it. Clients forget a
// request with its answer: progress of it that one read brings together with that, or a stream of its own after it, is lost to some.
// Nothing tells when a client has read a connection.
const reading = 50 * time.Millisecond

// recordedFor is the time from one moment of the recording to another, both in ms; 0 where the other came first.
func recordedFor(from, to int64) time.Duration {
	return time.Duration(max(to-from, 0)) * time.Millisecond
}

// held waits until nothing is missing. missing returns what is closed when that has changed, nil where nothing is, and how long is left
// to wait for it; then giveUp is called, which must make it less. A nil giveUp waits for as long as it takes. The error is ctx's.
func held(ctx context.Context, missing func() (changed <-chan struct{}, left time.Duration), giveUp func()) error {
	for {
		changed, left := missing()
		if changed == nil {
			return nil
		}
		var late <-chan time.Time
		if giveUp != nil {
			late = time.After(left)
		}
		select {
		case <-changed:
		case <-late:
			giveUp()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pause waits for d. The error is ctx's.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
