package roundtrip

import (
	"context"
	"errors"
	"net/http"
	"sync"

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
