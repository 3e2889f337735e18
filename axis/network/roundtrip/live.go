package roundtrip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

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

// rest takes what is left of an answer that the program closed; false where the end did not come.
func (a *live) rest(ctx context.Context) (whole bool) {
	if a.err != nil {
		return errors.Is(a.err, io.EOF)
	}
	var p []byte
	failed := a.t.opts.Outside(ctx, func() error {
		p, whole = exchange.Rest(a.from, a.cancel)
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
