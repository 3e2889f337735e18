package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// An incoming is the body of a gRPC call that is kept while it comes. It may be used by several goroutines at once, read by one.
type incoming struct {
	r     io.ReadCloser
	limit int64 // bytes

	mu       sync.Mutex
	kept     []byte
	at       int // in kept: behind the last whole message
	messages int
	ended    bool // by its end, not by an error
	over     bool // nothing more comes
	changed  lane.Change
}

// Read implements io.Reader. What it gives has been kept.
func (in *incoming) Read(p []byte) (int, error) {
	n, err := in.r.Read(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if int64(len(in.kept)+n) > in.limit {
		n, err = 0, fmt.Errorf("the request's body is longer than %d bytes, which is the most that is recorded", in.limit)
	}
	in.kept = append(in.kept, p[:n]...)
	for m := exchange.FirstMessage(in.kept[in.at:]); m != nil; m = exchange.FirstMessage(in.kept[in.at:]) {
		in.at += len(m)
		in.messages++
	}
	in.ended = in.ended || errors.Is(err, io.EOF)
	in.over = in.over || err != nil
	in.changed.Happened()
	return n, err
}

// Close implements io.Closer: a Read under way ends. Whoever sends the body on waits for that once its answer is over.
func (in *incoming) Close() error { return in.r.Close() }

// readAll reads until nothing more comes.
func (in *incoming) readAll() {
	for buf := make([]byte, readSize); ; {
		if _, err := in.Read(buf); err != nil {
			return
		}
	}
}

// steps is how many messages have come, and one more once the end has.
func (in *incoming) steps() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.stepsLocked()
}

func (in *incoming) stepsLocked() int {
	if in.ended {
		return in.messages + 1
	}
	return in.messages
}

// cameBefore reports whether all of the request had come after so many steps.
func (in *incoming) cameBefore(steps int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ended && steps > in.messages
}

// body is what has come by now.
func (in *incoming) body() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return bytes.Clone(in.kept)
}

// await waits for so many steps, for limit at most after the last time that something came; an incoming of which nothing more comes
// is waited for no longer. The error is ctx's where that is done before.
func (in *incoming) await(ctx context.Context, steps int, limit time.Duration) (came bool, err error) {
	late := false
	err = lane.Hold(ctx, nil, func() (<-chan struct{}, time.Duration) {
		in.mu.Lock()
		defer in.mu.Unlock()
		if came = in.stepsLocked() >= steps; came || in.over || late {
			return nil, 0
		}
		return in.changed.Next(), limit
	}, func() { late = true })
	return came && err == nil, err
}
