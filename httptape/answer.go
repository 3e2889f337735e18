package httptape

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/tape"
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
		Damage: func(err error) error { return t.damaged(rec, err) },
	}
	if ex.Status < http.StatusOK {
		return nil, asRecorded(exchange.CutAgain(req.Context(), ex.Error, opts))
	}
	from, err := exchange.OpenAnswer(t.blobs, ex, opts)
	if err != nil {
		return nil, t.damaged(rec, err)
	}
	if err := from.Begin(req.Context()); err != nil {
		_ = from.Close() // nothing of it was read
		return nil, err
	}
	b := &tapeBody{from: from}
	b.ctx, b.cancel = context.WithCancelCause(req.Context())
	res := t.head(req, rec, from.Size())
	res.Body, b.atEnd = b, t.trailing(res, rec.Seq)
	if from.Size() > 0 || ex.Error != "" || b.atEnd != nil {
		return res, nil
	}
	res.Body = http.NoBody
	_ = b.Close() // of nothing
	return res, nil
}

// head is the recorded answer without its body, which has size bytes.
func (t *Transport) head(req *http.Request, rec *exchange.Recorded, size int64) *http.Response {
	ex := rec.Exchange
	res := &http.Response{
		Status: statusOf(ex.Status), StatusCode: ex.Status,
		Header: exchange.HeaderOf(ex.ResponseHeaders), Request: req,
	}
	t.setProto(res, rec.Seq)
	res.ContentLength = exchange.FittingLength(res.Header, ex, size)
	return res
}

// trailing gives res the names of its trailers, and returns what gives it the values, which come with the end, as net/http
// does; nil where it has none.
func (t *Transport) trailing(res *http.Response, seq uint64) (atEnd func()) {
	trailer := t.trailerOf(seq)
	if trailer == nil {
		return nil
	}
	res.Trailer = make(http.Header)
	for name := range trailer {
		res.Trailer[name] = nil
	}
	return func() {
		for name, values := range trailer {
			res.Trailer[name] = values
		}
	}
}

// statusOf is the status line's end, as net/http writes it: reasons of a server's own are not kept.
func statusOf(code int) string {
	reason := cmp.Or(http.StatusText(code), "status code "+strconv.Itoa(code))
	return strconv.Itoa(code) + " " + reason
}

// damaged notes that an answer cannot be given whole.
func (t *Transport) damaged(rec *exchange.Recorded, err error) error {
	t.book.Damage(rec, err)
	return &DamagedError{Method: rec.Exchange.Method, URL: rec.Exchange.URL, Seq: rec.Seq, Err: err}
}

// setProto sets the protocol that the answer came in.
func (t *Transport) setProto(res *http.Response, seq uint64) {
	res.Proto = "HTTP/1.1"
	if raw := tape.FieldValue(t.extras[seq], bare.KeyProto); raw != nil {
		_ = json.Unmarshal(raw, &res.Proto) // what is none stays HTTP/1.1
	}
	var ok bool
	if res.ProtoMajor, res.ProtoMinor, ok = http.ParseHTTPVersion(res.Proto); !ok {
		res.Proto, res.ProtoMajor, res.ProtoMinor = "HTTP/1.1", 1, 1
	}
}

// trailerOf returns the trailers of an answer; nil for none.
func (t *Transport) trailerOf(seq uint64) http.Header {
	var fields [][2]string
	if raw := tape.FieldValue(t.extras[seq], bare.KeyTrailers); raw == nil || json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	h := make(http.Header)
	for _, f := range fields {
		h.Add(f[0], f[1])
	}
	return h
}

// A tapeBody gives a recorded answer, chunk by chunk: a Read gives bytes of one chunk at most.
type tapeBody struct {
	ctx    context.Context // of the request; Close ends it
	cancel context.CancelCauseFunc
	atEnd  func() // before the end is given; nil for nothing

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
	if b.atEnd != nil && errors.Is(err, io.EOF) {
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
