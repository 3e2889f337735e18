package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// cancelPatience is how long the replay of an answer that the program had cancelled waits for it to do so again. Without
// it the program would see its connection cut before it comes to its own decision.
const cancelPatience = time.Minute

// notOnTape is the error type of a request that the tape does not answer.
const notOnTape = "not_on_tape"

// replayed decides what a request gets from the tape. It never resolves and never dials.
func (s *Server) replayed(ctx context.Context, req *exchange.Request, host string, o *exchange.Open) *answer {
	id := o.Identity()
	if rec, ok := s.cfg.Book.Take(id.Key); ok {
		o.Answer(rec)
		return s.recorded(ctx, id, rec.Exchange)
	}
	if s.cfg.Book.DeadHost(host) {
		return dead(errors.New("no upstream answered for this host while recording"))
	}
	_, why := s.cfg.Book.Nearest(id, req)
	o.Refuse(why)
	return localAnswer(id, http.StatusBadRequest, notOnTape, missMessage(req, why))
}

func missMessage(req *exchange.Request, why string) string {
	return fmt.Sprintf("tapedeck: %s %s is not on the tape. %s", req.Method, req.URL, why)
}

// recorded is the answer that an exchange of the tape holds.
func (s *Server) recorded(ctx context.Context, id *exchange.Identity, ex *tape.Exchange) *answer {
	if ex.Status < 200 {
		return dead(cutAgain(ctx, ex.Error))
	}
	r, total, err := openPayload(s.cfg.Blobs, ex.Response)
	if err != nil {
		s.log.Error("recorded answer is damaged", "url", ex.URL, "error", err)
		return localAnswer(id, http.StatusBadRequest, "damaged_tape", fmt.Sprintf("tapedeck: the recorded answer of %s %s: %v", ex.Method, ex.URL, err))
	}
	a := &answer{status: ex.Status, header: recordedHeader(ex.ResponseHeaders), length: -1}
	a.body = &tapeBody{r: r, chunks: wholeChunks(ex.Stream, total), cut: ex.Error, speed: s.cfg.Speed, start: time.Now()}
	a.length = consistentLength(a.header, ex, total)
	return a
}

// consistentLength keeps the recorded Content-Length where it fits the bytes: it is theirs, or beyond them in an answer
// that was cut. Scrubbing may have changed a body's length; then the field goes.
func consistentLength(h http.Header, ex *tape.Exchange, total int64) int64 {
	n := contentLength(h)
	if !hasBody(ex.Method, ex.Status) || n == total || n > total && ex.Error != "" {
		return n
	}
	h.Del("Content-Length")
	return -1
}

func recordedHeader(fields []tape.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}

// wholeChunks are the chunks of an answer, in one where the tape tells none.
func wholeChunks(chunks []tape.Chunk, total int64) []tape.Chunk {
	if len(chunks) == 0 && total > 0 {
		return []tape.Chunk{{Length: total}}
	}
	return chunks
}

// openPayload streams a payload, nil being empty, and tells its length in bytes.
func openPayload(store cas.Store, p *tape.Payload) (io.ReadCloser, int64, error) {
	switch {
	case p == nil:
		return http.NoBody, 0, nil
	case p.Inline:
		return io.NopCloser(strings.NewReader(p.Text)), int64(len(p.Text)), nil
	}
	size, err := store.Size(p.Hash)
	if err != nil {
		return nil, 0, err
	}
	r, err := store.Open(p.Hash)
	return r, size, err
}

// tapeBody gives recorded chunks, each at its time.
type tapeBody struct {
	r      io.ReadCloser
	chunks []tape.Chunk // those that are left
	cut    string       // the recorded error; "" where the answer came to its end
	speed  float64
	start  time.Time
	buf    []byte
}

func (b *tapeBody) next(ctx context.Context) ([]byte, error) {
	if len(b.chunks) == 0 {
		return nil, b.end(ctx)
	}
	c := b.chunks[0]
	b.chunks = b.chunks[1:]
	if err := b.wait(ctx, c.TMS); err != nil {
		return nil, err
	}
	if int64(cap(b.buf)) < c.Length {
		b.buf = make([]byte, c.Length)
	}
	n, err := io.ReadFull(b.r, b.buf[:c.Length])
	if err != nil {
		return b.buf[:n], fmt.Errorf("recorded answer is damaged: %w", err)
	}
	return b.buf[:n], nil
}

// wait sleeps until a chunk that came tms ms after its request is due.
func (b *tapeBody) wait(ctx context.Context, tms int64) error {
	if b.speed <= 0 {
		return nil
	}
	due := time.Duration(float64(tms) / b.speed * float64(time.Millisecond))
	return sleep(ctx, due-time.Since(b.start))
}

// end is how the answer ended then.
func (b *tapeBody) end(ctx context.Context) error {
	if b.cut == "" {
		return io.EOF
	}
	return cutAgain(ctx, b.cut)
}

// cutAgain is the end of an answer that was cut then. One that the program cancelled waits for it to do so again.
func cutAgain(ctx context.Context, recorded string) error {
	if recorded == Cancelled {
		if err := sleep(ctx, cancelPatience); err != nil {
			return err
		}
	}
	return errors.New(recorded)
}

func (b *tapeBody) close() { b.r.Close() }

// sleep waits for d; the error is errCancelled when ctx is done before.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errCancelled
	}
}
