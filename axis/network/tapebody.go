package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// cancelPatience is how long the replay of an answer that the program had cancelled waits for it to do so again. Without
// it the program would see its connection cut before it comes to its own decision.
const cancelPatience = time.Minute

// checkedChunks are the chunks of an answer of total bytes, one where the tape tells none.
func checkedChunks(chunks []tape.Chunk, total int64) ([]tape.Chunk, error) {
	if len(chunks) == 0 && total > 0 {
		return []tape.Chunk{{Length: total}}, nil
	}
	var sum int64
	for _, c := range chunks {
		if c.Length < 0 || c.Length > total-sum {
			return nil, fmt.Errorf("its chunks are not those of %d bytes", total)
		}
		sum += c.Length
	}
	if sum != total {
		return nil, fmt.Errorf("its chunks have %d bytes, its body has %d", sum, total)
	}
	return chunks, nil
}

// openAnswer opens the body of a recorded answer, and tells its length in bytes. The error is that of a body that was
// not kept, is not in the store any more, or does not fit its chunks.
func openAnswer(store cas.Store, ex *tape.Exchange) (*tapeBody, int64, error) {
	if ex.Response == nil && hasBody(ex.Method, ex.Status) {
		return nil, 0, fmt.Errorf("its body was not kept: %s", ex.Error)
	}
	total, err := payloadSize(store, ex.Response)
	if err != nil {
		return nil, 0, err
	}
	chunks, err := checkedChunks(ex.Stream, total)
	if err != nil {
		return nil, 0, err
	}
	r, err := openPayload(store, ex.Response)
	if err != nil {
		return nil, 0, err
	}
	return &tapeBody{r: r, chunks: chunks, rest: total, cut: ex.Error}, total, nil
}

// payloadSize is the length of a payload in bytes, as its bytes have it.
func payloadSize(store cas.Store, p *tape.Payload) (int64, error) {
	switch {
	case p == nil:
		return 0, nil
	case p.Inline:
		return int64(len(p.Text)), nil
	}
	return store.Size(p.Hash)
}

func openPayload(store cas.Store, p *tape.Payload) (io.ReadCloser, error) {
	if p == nil {
		return http.NoBody, nil
	}
	return p.Open(store)
}

// maxPiece bounds what is held of a recorded chunk, in bytes. Only a chunk that was decoded, to take a secret out, is
// longer than readSize.
const maxPiece = 1 << 20

// tapeBody gives recorded chunks, each at its time.
type tapeBody struct {
	r      io.ReadCloser
	chunks []tape.Chunk // those that have not begun
	left   int64        // bytes of the chunk that has
	rest   int64        // bytes of the whole answer that are left
	cut    string       // the recorded error; "" where the answer came to its end
	speed  float64
	start  time.Time
	reveal func([]byte) []byte // see Config.Reveal; no placeholder lies in two chunks
	damage func(error)         // told of bytes that are not those that were recorded; nil for nobody
	buf    []byte
}

func (b *tapeBody) next(ctx context.Context) ([]byte, error) {
	for b.left == 0 {
		if len(b.chunks) == 0 {
			return nil, b.end(ctx)
		}
		c := b.chunks[0]
		b.chunks, b.left = b.chunks[1:], c.Length
		if err := b.wait(ctx, c.TMS); err != nil {
			return nil, err
		}
	}
	size := min(b.left, maxPiece)
	if int64(cap(b.buf)) < size {
		b.buf = make([]byte, size)
	}
	if err := b.read(b.buf[:size]); err != nil {
		if b.damage != nil {
			b.damage(err)
		}
		return nil, fmt.Errorf("recorded answer is damaged: %w", err)
	}
	if b.reveal != nil {
		return b.reveal(b.buf[:size]), nil
	}
	return b.buf[:size], nil
}

// read fills p. A blob tells at its end only whether it is sound, so the last bytes count when the end is there.
func (b *tapeBody) read(p []byte) error {
	if _, err := io.ReadFull(b.r, p); err != nil {
		return err
	}
	b.left -= int64(len(p))
	b.rest -= int64(len(p))
	if b.rest > 0 {
		return nil
	}
	var more [1]byte
	if _, err := io.ReadFull(b.r, more[:]); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after its last byte: %w", err)
	}
	return nil
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
		return errors.New(HeldOn)
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
