package httptape

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// patience is how long at least an answer that its caller cancelled while recording waits for it to do so again
// (exchange.Recorded.Patience).
const patience = 10 * time.Second

// answer gives the recorded answer.
func (t *Transport) answer(req *http.Request, o *exchange.Open, rec *exchange.Recorded) (*http.Response, error) {
	if err := o.End(""); err != nil { // in ModeReplayWithNewEpisodes it is recorded, and left out when the tape is made
		return nil, err
	}
	ex := rec.Exchange
	opts := &exchange.AnswerOptions{
		Speed: t.opts.Speed, Patience: rec.Patience(patience), Of: rec,
		Damage: func(err error) error { return t.book.Damage(rec, err) },
	}
	if ex.Status < http.StatusOK {
		return nil, asRecorded(exchange.CutAgain(req.Context(), ex.Error, opts))
	}
	from, err := exchange.OpenAnswer(t.blobs, ex, opts)
	if err != nil {
		return nil, t.book.Damage(rec, err)
	}
	if err := from.Begin(req.Context()); err != nil {
		_ = from.Close() // nothing of it was read
		return nil, err
	}
	res := rec.Response(req, from.Size())
	b := &tapeBody{from: from, atEnd: func() { rec.GiveTrailers(res) }}
	b.ctx, b.cancel = context.WithCancelCause(req.Context())
	res.Body = b
	if from.Size() > 0 || ex.Error != "" || res.Trailer != nil {
		return res, nil
	}
	res.Body = http.NoBody
	_ = b.Close() // of nothing
	return res, nil
}

// asRecorded makes a *RecordedError of an answer's cut; any other error stays.
func asRecorded(err error) error {
	var cut *exchange.CutError
	if errors.As(err, &cut) {
		return exchange.ErrorAgain(cut.Text)
	}
	return err
}

// A tapeBody gives a recorded answer, chunk by chunk: a Read gives bytes of one chunk at most.
type tapeBody struct {
	ctx    context.Context // of the request; Close ends it
	cancel context.CancelCauseFunc
	atEnd  func() // called before the end is given

	mu    sync.Mutex // guards what follows: one goroutine may close what another reads
	from  *exchange.AnswerBody
	ahead []byte // of the chunk that has begun
	err   error  // that every further Read gives
	once  sync.Once
}

// Read implements io.Reader.
func (b *tapeBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && b.ctx.Err() != nil {
		b.err = b.ended()
	}
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

// next goes on to bytes, or to the end.
func (b *tapeBody) next() (err error) {
	if b.ahead, err = b.from.Next(b.ctx); err == nil {
		return nil
	}
	if b.ctx.Err() != nil {
		return b.ended()
	}
	b.cancel(nil) // nothing waits any more, closed or not
	b.from.Given()
	if errors.Is(err, io.EOF) {
		b.atEnd()
	}
	return asRecorded(err)
}

// ended is the error of a context that has ended, or of a body that is closed.
func (b *tapeBody) ended() error {
	if errors.Is(context.Cause(b.ctx), errClosedBody) {
		return errClosedBody
	}
	return b.ctx.Err()
}

// Close implements io.Closer.
func (b *tapeBody) Close() error {
	var err error
	b.once.Do(func() {
		b.cancel(errClosedBody) // wakes a Read that waits
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = errClosedBody
		err = b.from.Close()
	})
	return err
}
