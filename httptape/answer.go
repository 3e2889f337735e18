package httptape

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The keys that a record has beside those of its kind.
const (
	keyProto    = "proto"             // the protocol of the answer where it is not HTTP/1.1
	keyTrailers = "response_trailers" // [[name,value]]
)

// patience is how long an answer that its caller cancelled while recording waits for it to do so again.
const patience = 10 * time.Second

// answer gives the recorded answer.
func (t *Transport) answer(req *http.Request, o *exchange.Open, rec *exchange.Recorded) (*http.Response, error) {
	if err := o.End(""); err != nil { // in ModeReplayWithNewEpisodes it is recorded, and left out when the tape is made
		return nil, err
	}
	ex := rec.Exchange
	b := &tapeBody{
		ctx: req.Context(), chunks: ex.Stream, cut: ex.Error, speed: t.opts.Speed, start: time.Now(),
		damage: func(err error) error { return t.damaged(rec, err) },
	}
	if ex.Status < http.StatusOK {
		return nil, b.again()
	}
	res := &http.Response{
		Status: statusOf(ex.Status), StatusCode: ex.Status,
		Header: headerOf(ex.ResponseHeaders), Request: req,
	}
	t.setProto(res, rec.Seq)
	if err := b.open(t, ex); err != nil {
		return nil, b.damage(err)
	}
	res.ContentLength = lengthOf(res.Header, ex, b.rest)
	if trailer := t.trailerOf(rec.Seq); trailer != nil {
		res.Trailer = make(http.Header)
		for name := range trailer {
			res.Trailer[name] = nil // as net/http: the values come with the end
		}
		b.atEnd = func() {
			for name, values := range trailer {
				res.Trailer[name] = values
			}
		}
	}
	res.Body = b
	if b.rest == 0 && b.cut == "" && b.atEnd == nil {
		res.Body = http.NoBody
	}
	return res, nil
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
	if raw := valueOf(t.extras[seq], keyProto); raw != nil {
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
	if raw := valueOf(t.extras[seq], keyTrailers); raw == nil || json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	h := make(http.Header)
	for _, f := range fields {
		h.Add(f[0], f[1])
	}
	return h
}

func valueOf(fields []tape.Field, name string) json.RawMessage {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

func headerOf(fields []tape.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}

// lengthOf is the length that the recorded answer says it has, -1 for none. Where it does not fit the bytes, which scrubbing
// may have changed, the header goes.
func lengthOf(h http.Header, ex *tape.Exchange, total int64) int64 {
	n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	switch {
	case err == nil && n >= 0 && (!hasBody(ex.Method, ex.Status) || n == total || n > total && ex.Error != ""):
		return n
	case !hasBody(ex.Method, ex.Status) && ex.Method != http.MethodHead:
		return 0
	}
	h.Del("Content-Length")
	return -1
}

// A tapeBody gives recorded chunks, each at its time: a Read gives bytes of one chunk at most.
type tapeBody struct {
	ctx    context.Context
	cut    string // the recorded error; "" where the answer came to its end
	speed  float64
	start  time.Time
	damage func(error) error
	atEnd  func() // before the end is given; nil for nothing

	mu     sync.Mutex // guards what follows: one goroutine may close what another reads
	r      io.ReadCloser
	chunks []tape.Chunk  // those that have not begun
	left   int64         // bytes of the chunk that has
	rest   int64         // bytes of the whole answer that are left
	err    error         // that every further Read gives
	closed chan struct{} // nil until open
	once   sync.Once
}

// open opens the body of ex. The error is that of one that was not kept, is missing, or does not fit its chunks.
func (b *tapeBody) open(t *Transport, ex *tape.Exchange) error {
	b.closed = make(chan struct{})
	if ex.Response == nil && hasBody(ex.Method, ex.Status) {
		return fmt.Errorf("its body was not kept: %s", ex.Error)
	}
	if ex.Response == nil {
		b.r, b.chunks = http.NoBody, nil
		return nil
	}
	b.rest = ex.Response.Len
	if ex.Response.Inline {
		b.rest = int64(len(ex.Response.Text))
	} else if size, err := t.blobs.Size(ex.Response.Hash); err != nil {
		return err
	} else if size != b.rest {
		return fmt.Errorf("blob %s has %d bytes where %d are named", ex.Response.Hash, size, b.rest)
	}
	if len(b.chunks) == 0 && b.rest > 0 {
		b.chunks = []tape.Chunk{{Length: b.rest}}
	}
	var sum int64
	for _, c := range b.chunks {
		if c.Length < 0 || c.Length > b.rest-sum {
			return fmt.Errorf("its chunks are not those of %d bytes", b.rest)
		}
		sum += c.Length
	}
	if sum != b.rest {
		return fmt.Errorf("its chunks have %d bytes, its body has %d", sum, b.rest)
	}
	var err error
	b.r, err = ex.Response.Open(t.blobs)
	return err
}

// Read implements io.Reader.
func (b *tapeBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = b.ctx.Err()
	}
	if b.err == nil && b.left == 0 {
		b.err = b.next()
	}
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	p = p[:min(int64(len(p)), b.left)]
	if b.err = b.read(p); b.err != nil {
		return 0, b.err
	}
	return len(p), nil
}

// next goes on to a chunk that has bytes, or to the end.
func (b *tapeBody) next() error {
	for b.left == 0 {
		if len(b.chunks) == 0 {
			return b.again()
		}
		c := b.chunks[0]
		b.chunks, b.left = b.chunks[1:], c.Length
		if err := b.wait(c.TMS); err != nil {
			return err
		}
	}
	return nil
}

// read fills p. A blob tells at its end only whether it is sound, so the last bytes count when the end is there.
func (b *tapeBody) read(p []byte) error {
	_, err := io.ReadFull(b.r, p)
	if err == nil {
		b.left -= int64(len(p))
		b.rest -= int64(len(p))
	}
	if err == nil && b.rest == 0 {
		var more [1]byte
		if _, err = io.ReadFull(b.r, more[:]); errors.Is(err, io.EOF) {
			return nil
		}
		err = fmt.Errorf("after its last byte: %w", err)
	}
	if err != nil {
		return b.damage(err)
	}
	return nil
}

// wait sleeps until what came tms ms after the request is due.
func (b *tapeBody) wait(tms int64) error {
	if b.speed <= 0 {
		return nil
	}
	due := time.Duration(float64(tms) / b.speed * float64(time.Millisecond))
	return b.sleep(due - time.Since(b.start))
}

// again is how the answer ended then. One that its caller cancelled waits for it to do so again; one whose deadline passed
// waits where answers take their time.
func (b *tapeBody) again() error {
	if b.cut == "" {
		if b.atEnd != nil {
			b.atEnd()
		}
		return io.EOF
	}
	if b.cut == textCancelled || b.cut == textDeadline && b.speed > 0 {
		if err := b.sleep(patience); err != nil {
			return err
		}
	}
	return recordedError(b.cut)
}

// sleep waits for d; the error is that of a context that ends before, or of a body that is closed.
func (b *tapeBody) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	case <-b.closed:
		return errClosedBody
	}
}

// Close implements io.Closer.
func (b *tapeBody) Close() error {
	var err error
	b.once.Do(func() {
		close(b.closed) // wakes a Read that waits
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err = errClosedBody
		err = b.r.Close()
	})
	return err
}
