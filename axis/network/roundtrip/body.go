package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// errClosedBody is what a Read gives after Close.
var errClosedBody = errors.New("read on a closed body")

// A source gives one answer. It is used by one goroutine at a time.
type source interface {
	// next returns the bytes of one chunk, valid until it is called again, or an error: io.EOF at the end.
	next(ctx context.Context) ([]byte, error)
	// over says what the record tells of the end that next gave as err, nil where the program closed the answer before it, and
	// what the program gets.
	over(ctx context.Context, res *http.Response, err error) (text string, out error)
	// end records the exchange, and frees the source.
	end(o *exchange.Open, text string) error
}

// A body passes an answer on to its program. It is recorded before its end is passed on: when a Read gives it, or at Close.
type body struct {
	t      *Transport
	res    *http.Response
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex // guards what follows: one goroutine may close what another reads
	o     *exchange.Open
	from  source
	ahead []byte // of the chunk that has begun
	err   error  // what every further Read gives
	ended bool
}

// begin notes an answer that is being given.
func (t *Transport) begin(b *body) *body {
	b.t = t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[b] = struct{}{}
	return b
}

// Read implements io.Reader. It gives bytes of one chunk at most.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
	case b.ctx.Err() != nil:
		b.err = b.end(b.ctx.Err())
	case len(b.ahead) == 0:
		b.ahead, b.err = b.from.next(b.ctx)
		if b.err != nil {
			b.err = b.end(b.err)
		}
	}
	if b.err != nil {
		return 0, b.err
	}
	n := copy(p, b.ahead)
	b.ahead = b.ahead[n:]
	return n, nil
}

// Close implements io.Closer. A Read that waits ends.
func (b *body) Close() error {
	if !b.mu.TryLock() {
		b.cancel()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	err := b.end(nil)
	b.ahead, b.err = nil, errClosedBody
	return err
}

// end ends the exchange, once, and returns what the program gets. The caller holds mu.
func (b *body) end(err error) error {
	if b.ended {
		return err
	}
	b.ended = true
	text, err := b.from.over(b.ctx, b.res, err)
	b.cancel()
	if failed := b.from.end(b.o, text); failed != nil {
		err = both(failed, err)
	}
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	delete(b.t.open, b)
	return err
}

// both is the one error that is there, or the two joined.
func both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// patience is how long at least, on the run's clock, an answer that its program ended while recording waits for it to do so again.
const patience = 10 * time.Second

// answer gives the recorded answer.
func (t *Transport) answer(req *http.Request, o *exchange.Open, rec *exchange.Recorded) (*http.Response, error) {
	a, ex := &taped{t: t, rec: rec}, rec.Exchange
	opts := &exchange.AnswerOptions{Speed: t.opts.Speed, Patience: rec.Patience(patience), Damage: a.damaged}
	if t.opts.Machine {
		opts.Of = rec
		if err := o.End(""); err != nil {
			return nil, err
		}
	} else {
		opts.Clock = &exchange.Clock{NowMS: t.opts.NowMS, Wait: t.opts.Wait}
	}
	if ex.Status < http.StatusOK {
		cut, err := a.over(req.Context(), nil, exchange.CutAgain(req.Context(), ex.Error, opts))
		return nil, both(err, a.recorded(o, cut))
	}
	var err error
	if a.from, err = exchange.OpenAnswer(t.opts.Tape.Store, ex, opts); err != nil {
		return nil, a.damaged(err)
	}
	if t.opts.Machine {
		if err := a.from.Begin(req.Context()); err != nil {
			return nil, both(err, a.from.Close())
		}
	}
	res := rec.Response(req, a.from.Size())
	if a.from.Size() == 0 && ex.Error == "" && res.Trailer == nil {
		res.Body = http.NoBody
		return res, a.end(o, "")
	}
	ctx, cancel := context.WithCancel(req.Context())
	res.Body = t.begin(&body{o: o, ctx: ctx, cancel: cancel, from: a, res: res})
	return res, nil
}

// taped is the body of a recorded answer.
type taped struct {
	t    *Transport
	rec  *exchange.Recorded
	from *exchange.AnswerBody
}

// next implements source.
func (a *taped) next(ctx context.Context) ([]byte, error) { return a.from.Next(ctx) }

// over implements source.
func (a *taped) over(_ context.Context, res *http.Response, err error) (text string, out error) {
	if cut, ok := errors.AsType[*exchange.CutError](err); ok {
		return cut.Text, exchange.ErrorAgain(cut.Text)
	}
	if errors.Is(err, io.EOF) {
		a.rec.GiveTrailers(res)
	}
	return a.rec.Exchange.Error, err
}

// end implements source.
func (a *taped) end(o *exchange.Open, text string) error {
	return both(a.recorded(o, text), a.from.Close())
}

// recorded records the exchange, unless its request was recorded before.
func (a *taped) recorded(o *exchange.Open, text string) error {
	if a.t.opts.Machine {
		return nil
	}
	return o.EndRecorded(text, a.t.opts.Timed)
}

// damaged notes that the answer cannot be given whole.
func (a *taped) damaged(err error) error { return a.t.book.Damage(a.rec, err) }

// readSize bounds one read of an upstream's body, and with it a chunk, in bytes.
const readSize = 32 << 10

// buffers are what answers are read into.
var buffers = sync.Pool{New: func() any { b := make([]byte, readSize); return &b }}

// live sends a request on and records what comes.
func (t *Transport) live(req *http.Request, sent []byte, o *exchange.Open) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	defer context.AfterFunc(t.aborted, cancel)()
	var res *http.Response
	err := t.opts.Outside(ctx, func() (err error) {
		res, err = t.next.RoundTrip(exchange.Outgoing(ctx, req, sent)) //nolint:bodyclose // the program closes it, or it is closed below
		return err
	})
	if err == nil && res.StatusCode < http.StatusOK {
		err = both(fmt.Errorf("%w: %s answered %d", ErrUpgrade, req.URL.Host, res.StatusCode), res.Body.Close())
	}
	if err != nil {
		defer cancel()
		return nil, both(err, t.kept(o.End(exchange.ErrorTextIn(ctx, err))))
	}
	res.Request = req
	t.opts.Scrubber.LearnHeader(res.Header)
	a := &live{t: t, o: o, from: res.Body, cancel: cancel}
	if err := t.kept(o.Response(res.StatusCode, t.opts.Kept(res.Header))); err != nil {
		return nil, both(err, a.end(o, ""))
	}
	o.Proto(res.Proto)
	if res.Body == nil || res.Body == http.NoBody || res.ContentLength == 0 || !exchange.HasBody(req.Method, res.StatusCode) {
		res.Body = http.NoBody
		return res, a.end(o, "")
	}
	res.Body = t.begin(&body{o: o, ctx: ctx, cancel: cancel, from: a, res: res})
	return res, nil
}

// live is the body of an answer that comes now: each read of the upstream is one chunk, however small the program's buffer.
type live struct {
	t      *Transport
	o      *exchange.Open
	from   io.ReadCloser // nil for none
	cancel context.CancelFunc
	buf    *[]byte // from buffers; nil before the first read
	total  int64
	err    error // what came behind the bytes that next gave
}

// next implements source.
func (a *live) next(ctx context.Context) ([]byte, error) {
	if a.buf == nil {
		a.buf = buffers.Get().(*[]byte)
	}
	buf := *a.buf
	for a.err == nil {
		n := 0
		failed := a.t.opts.Outside(ctx, func() error {
			n, a.err = a.from.Read(buf)
			return nil
		})
		if failed != nil {
			return nil, failed
		}
		if n > 0 {
			return buf[:n], a.take(buf[:n])
		}
	}
	return nil, a.err
}

// take records a chunk.
func (a *live) take(p []byte) error {
	if a.total += int64(len(p)); a.total > a.t.opts.MaxBody && !a.t.opts.Machine {
		return fmt.Errorf("%w: the answer of %s has more than %d bytes", exchange.ErrTooLarge, a.o.Request().URL, a.t.opts.MaxBody)
	}
	return a.t.kept(a.o.Chunk(p))
}

// over implements source.
func (a *live) over(ctx context.Context, res *http.Response, err error) (text string, out error) {
	switch {
	case errors.Is(err, io.EOF):
		a.o.Trailers(a.t.opts.Kept(res.Trailer))
		return "", err
	case err != nil:
		return exchange.ErrorTextIn(ctx, err), err
	case ctx.Err() == nil && a.t.aborted.Err() == nil && a.rest(ctx):
		a.o.Trailers(a.t.opts.Kept(res.Trailer))
		return "", nil
	}
	return exchange.ErrorTextIn(ctx, context.Canceled), nil
}

// linger is how long an answer whose program closed it before it saw the end is read on. A JSON decoder reads a value and never
// the end behind it, and an answer that has come whole is not one that was cut.
const linger = 200 * time.Millisecond

// maxLinger bounds, in bytes, what is read then.
const maxLinger = 64 << 10

// rest takes what is left of an answer that the program closed; false where the end did not come.
func (a *live) rest(ctx context.Context) (whole bool) {
	if a.err != nil {
		return errors.Is(a.err, io.EOF)
	}
	var p []byte
	failed := a.t.opts.Outside(ctx, func() error {
		late := time.AfterFunc(linger, a.cancel) // which ends a read that waits
		var err error
		p, err = io.ReadAll(io.LimitReader(a.from, maxLinger))
		whole = late.Stop() && err == nil && len(p) < maxLinger
		return nil
	})
	if whole && len(p) > 0 {
		failed = both(failed, a.take(p))
	}
	return whole && failed == nil
}

// end implements source.
func (a *live) end(o *exchange.Open, text string) error {
	a.cancel()
	if a.buf != nil {
		buffers.Put(a.buf) // the program has its bytes: Read copies
		a.buf = nil
	}
	err := a.t.kept(o.End(text))
	if a.from == nil {
		return err
	}
	return both(err, a.from.Close())
}
