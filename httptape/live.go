package httptape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// side is what the tape keeps of an answer beside the record that package exchange makes.
type side struct {
	proto   string      // "HTTP/2.0"; "" for HTTP/1.1
	trailer http.Header // not scrubbed
}

// live sends a request on and records what comes.
func (t *Transport) live(req *http.Request, body []byte, o *exchange.Open) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	if err := t.calling(&cancel); err != nil {
		cancel()
		return nil, errors.Join(err, o.End(tape.Cancelled))
	}
	defer t.called(&cancel)
	res, err := t.opts.Base.RoundTrip(outgoing(ctx, req, body))
	if err == nil && res.StatusCode < http.StatusOK {
		err = errors.Join(fmt.Errorf("%w: the upstream answered %d", ErrUpgrade, res.StatusCode), res.Body.Close())
	}
	if err != nil {
		t.fail(o.End(errorText(ctx, err)))
		cancel()
		return nil, err
	}
	res.Request = req
	t.keepHead(o, res)
	if res.Body == nil || res.Body == http.NoBody || res.ContentLength == 0 || !exchange.HasBody(methodOf(req), res.StatusCode) {
		t.aside(o.Arrival(), res)
		t.fail(o.End(""))
		if res.Body == nil {
			res.Body = http.NoBody
		}
		cancel()
		return res, nil
	}
	b := &liveBody{t: t, o: o, res: res, from: res.Body, ctx: ctx, cancel: cancel}
	t.mu.Lock()
	t.open[b] = struct{}{}
	t.mu.Unlock()
	res.Body = b
	return res, nil
}

// calling notes a request that is about to be sent, so that Close can end it. The error is why it must not be sent.
func (t *Transport) calling(cancel *context.CancelFunc) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorded++
	t.calls[cancel] = struct{}{}
	if t.unset == "" || t.failed != nil {
		return nil
	}
	t.failed = fmt.Errorf("the variable %s is not set: recording needs its value", t.unset)
	return fmt.Errorf("httptape: %w", t.failed)
}

func (t *Transport) called(cancel *context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, cancel)
}

// outgoing is the request that leaves: what it was, with a body that was read.
func outgoing(ctx context.Context, req *http.Request, body []byte) *http.Request {
	out := req.WithContext(ctx)
	if req.Body == nil || req.Body == http.NoBody {
		return out
	}
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out
}

// keepHead records the head of an answer. That the answer cannot be kept is no reason to keep it from its caller.
func (t *Transport) keepHead(o *exchange.Open, res *http.Response) {
	t.secrets.LearnHeader(res.Header)
	t.fail(o.Response(res.StatusCode, withoutNames(res.Header, t.drop)))
}

// aside notes what the tape keeps beside the exchange.
func (t *Transport) aside(arrival uint64, res *http.Response) {
	var s side
	if res.Proto != "HTTP/1.1" {
		s.proto = res.Proto
	}
	if len(res.Trailer) > 0 {
		s.trailer = withoutNames(res.Trailer, t.drop)
	}
	if s.proto == "" && s.trailer == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sides[arrival] = s
}

// linger is how long Close waits for the end of an answer that its caller closed before it saw the end. A JSON decoder reads
// a value and never the end behind it, and an answer that has come whole is not one that was cut.
const linger = 200 * time.Millisecond

// maxLinger bounds, in bytes, what is read then.
const maxLinger = 64 << 10

// errClosedBody is what a Read gives after Close.
var errClosedBody = errors.New("httptape: read on a closed body")

// readSize bounds one read of an upstream's body, and with it a chunk, in bytes.
const readSize = 32 << 10

// A liveBody passes an answer on to its caller and records it: each read of the upstream is one chunk, however small the
// caller's buffer. The end reaches the caller after it has been recorded.
type liveBody struct {
	t      *Transport
	o      *exchange.Open
	res    *http.Response
	from   io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc

	// Of the one Read at a time.
	buf   []byte
	ahead []byte // of buf: what came and has not been passed on
	err   error  // what came behind it

	mu      sync.Mutex // guards what follows, and o
	reading bool       // a Read is waiting for the upstream
	closed  bool
	ended   bool
}

// Read implements io.Reader.
func (b *liveBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, errClosedBody
	}
	b.reading = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.reading = false
		b.mu.Unlock()
	}()
	if len(b.ahead) == 0 && b.err == nil {
		b.fill()
	}
	n := copy(p, b.ahead)
	b.ahead = b.ahead[n:]
	if len(b.ahead) == 0 {
		return n, b.err
	}
	return n, nil
}

// fill reads what the upstream gives.
func (b *liveBody) fill() {
	if b.buf == nil {
		b.buf = make([]byte, readSize)
	}
	n, err := b.from.Read(b.buf)
	b.ahead, b.err = b.buf[:n], err
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took(b.ahead, err)
}

// took records what a read of the upstream gave. The caller holds mu.
func (b *liveBody) took(p []byte, err error) {
	if b.ended {
		return
	}
	if len(p) > 0 {
		b.t.fail(b.o.Chunk(p))
	}
	switch {
	case errors.Is(err, io.EOF):
		b.end("")
	case err != nil:
		b.end(errorText(b.ctx, err))
	}
}

// end ends the exchange, once. The caller holds mu.
func (b *liveBody) end(text string) {
	if b.ended {
		return
	}
	b.ended = true
	b.t.aside(b.o.Arrival(), b.res)
	b.t.fail(b.o.End(text))
	b.t.mu.Lock()
	delete(b.t.open, b)
	b.t.mu.Unlock()
}

// Close implements io.Closer. An answer that has not come to its end is recorded as what its caller saw: cut.
func (b *liveBody) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	wait := first && !b.reading && !b.ended && b.ctx.Err() == nil
	b.mu.Unlock()
	if wait {
		b.drain()
	}
	return b.finish()
}

// abandon ends an answer that is still open when the recording ends.
func (b *liveBody) abandon() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.t.opts.Log.Debug("answer was still open at the end of the recording", "url", b.o.Request().URL)
	_ = b.finish() // the error is one of closing what nobody reads
}

func (b *liveBody) finish() error {
	text := tape.Cancelled
	if errors.Is(b.ctx.Err(), context.DeadlineExceeded) {
		text = exchange.DeadlinePassed
	}
	b.cancel()
	err := b.from.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(text)
	return err
}

// drain reads on for a moment. Only where the end comes is what it read a part of the answer.
func (b *liveBody) drain() {
	rest := make(chan []byte, 1)
	go func() { // ends with the answer, or when finish cancels the request
		p, err := io.ReadAll(io.LimitReader(b.from, maxLinger))
		if err != nil || len(p) == maxLinger {
			p = nil
		} else if p == nil {
			p = []byte{}
		}
		rest <- p
	}()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case p := <-rest:
		if p != nil {
			b.mu.Lock()
			b.took(p, io.EOF)
			b.mu.Unlock()
		}
	case <-timer.C:
		b.cancel()
		<-rest
	}
}
