package httptape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// live sends a request on and records what comes.
func (t *Transport) live(req *http.Request, body []byte, o *exchange.Open) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	if err := t.calling(&cancel); err != nil {
		cancel()
		return nil, errors.Join(err, o.End(tape.Cancelled))
	}
	defer t.called(&cancel)
	res, err := t.opts.Base.RoundTrip(exchange.Outgoing(ctx, req, body))
	if err == nil && res.StatusCode < http.StatusOK {
		err = errors.Join(fmt.Errorf("%w: the upstream answered %d", ErrUpgrade, res.StatusCode), res.Body.Close())
	}
	if err != nil {
		t.fail(o.End(exchange.ErrorTextIn(ctx, err)))
		cancel()
		return nil, err
	}
	res.Request = req
	t.keepHead(o, res)
	if res.Body == nil || res.Body == http.NoBody || res.ContentLength == 0 || !exchange.HasBody(req.Method, res.StatusCode) {
		t.endOf(o, res, "")
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

// keepHead records the head of an answer. That the answer cannot be kept is no reason to keep it from its caller.
func (t *Transport) keepHead(o *exchange.Open, res *http.Response) {
	t.secrets.LearnHeader(res.Header)
	t.fail(o.Response(res.StatusCode, withoutNames(res.Header, t.drop)))
}

// endOf ends the exchange of an answer: text is what cut it. One that was cut has no trailers, which come with the end.
func (t *Transport) endOf(o *exchange.Open, res *http.Response, text string) {
	o.Proto(res.Proto)
	if text == "" {
		o.Trailers(withoutNames(res.Trailer, t.drop))
	}
	t.fail(o.End(text))
}

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
		b.end(exchange.ErrorTextIn(b.ctx, err))
	}
}

// end ends the exchange, once. The caller holds mu.
func (b *liveBody) end(text string) {
	if b.ended {
		return
	}
	b.ended = true
	b.t.endOf(b.o, b.res, text)
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
	p, ok := exchange.Rest(b.from, b.cancel)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took(p, io.EOF)
}
