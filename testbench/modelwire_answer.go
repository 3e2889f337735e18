package testbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A wireAnswer is the http.ResponseWriter of an answer that is there whole; what is flushed at once is one chunk.
type wireAnswer struct {
	header http.Header
	status int
	chunks []wireChunk
	next   []byte        // of the next chunk
	delay  time.Duration // before it
}

// A wireChunk comes some time after the one before it.
type wireChunk struct {
	b     []byte
	delay time.Duration
}

// Header implements http.ResponseWriter.
func (w *wireAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *wireAnswer) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *wireAnswer) Write(p []byte) (int, error) {
	w.next = append(w.next, p...)
	return len(p), nil
}

// Flush implements http.Flusher.
func (w *wireAnswer) Flush() {
	if len(w.next) > 0 {
		w.chunks, w.next, w.delay = append(w.chunks, wireChunk{w.next, w.delay}), nil, 0
	}
}

// response is what a client gets. s is the call that ends with it, nil where it has ended.
func (w *wireAnswer) response(req *http.Request, s *fixture.Stream) *http.Response {
	w.Flush()
	ctx, cancel := context.WithCancel(req.Context())
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Request: req, ContentLength: -1, Body: &wireBody{ctx: ctx, cancel: cancel, chunks: w.chunks, call: s},
	}
}

// errBodyClosed is what a Read gives after Close.
var errBodyClosed = errors.New("testbench: read on a closed body")

// A wireBody gives bytes of one chunk at most with a Read, each chunk at its time. The call is recorded before its last chunk is
// given: what the program does with the answer stands behind it.
type wireBody struct {
	ctx    context.Context
	cancel context.CancelFunc
	call   *fixture.Stream // nil where it is recorded

	recorded atomic.Bool

	mu     sync.Mutex // guards what follows: one goroutine may close what another reads
	chunks []wireChunk
	ahead  []byte // of the chunk that has begun
	err    error  // what every further Read gives
}

// Read implements io.Reader.
func (b *wireBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && len(b.ahead) == 0 {
		b.err = b.next()
	}
	if b.err != nil {
		return 0, b.err
	}
	n := copy(p, b.ahead)
	b.ahead = b.ahead[n:]
	return n, nil
}

// next goes on to the next chunk.
func (b *wireBody) next() error {
	if err := b.ctx.Err(); err != nil {
		return b.cut(err)
	}
	if len(b.chunks) == 0 {
		b.cancel()
		return io.EOF
	}
	c := b.chunks[0]
	if b.chunks = b.chunks[1:]; b.call != nil {
		if err := b.call.Wait(b.ctx, c.delay); err != nil {
			return b.cut(err)
		}
		if len(b.chunks) == 0 {
			if err := b.end(""); err != nil {
				return err
			}
		}
	}
	b.ahead = c.b
	return nil
}

// over reports whether there is nothing left to record.
func (b *wireBody) over() bool { return b.recorded.Load() }

// end records the call.
func (b *wireBody) end(cut string) error {
	defer b.recorded.Store(true)
	return b.call.End(cut)
}

// cut ends the call that the program ended.
func (b *wireBody) cut(err error) error {
	if b.call == nil {
		return err
	}
	if failed := b.end(exchange.ErrorTextIn(b.ctx, err)); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// Close implements io.Closer. A Read that waits ends.
func (b *wireBody) Close() error {
	if !b.mu.TryLock() {
		b.cancel()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.cancel()
	b.ahead, b.err = nil, errBodyClosed
	if b.call == nil {
		return nil
	}
	return b.end(tape.Cancelled)
}
