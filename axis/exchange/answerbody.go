package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxPiece bounds what is held of a recorded chunk, in bytes. Only a chunk that was decoded, to take a secret out, is
// longer than what one read of an upstream gives.
const maxPiece = 1 << 20

// AnswerOptions say how a recorded answer is given. Nil and zero work.
type AnswerOptions struct {
	// Speed is how fast it comes: 0 at once, 1 as recorded, N that many times as fast.
	Speed float64
	// Patience is how long the end of an answer that the program had cancelled waits for it to do so again. Without it the
	// program would see its connection cut before it comes to its own decision.
	Patience time.Duration
	// Of is the record that holds the answer, as a Book gave it. With it an answer keeps its place among those to equal
	// requests that were under way at the same time; nil gives it by itself.
	Of *Recorded
	// Held, when not nil, is told that the answer waits until others have ended or been asked for, and that it does no more.
	Held func(bool)
	// Clock is that of a run which does not go by the machine's, whose program does not read ahead of what it decides. Nil is the machine's.
	Clock *Clock
	// Reveal changes the bytes of each chunk, of which 1 MiB at most are given at once; nil leaves them as they are.
	Reveal func([]byte) []byte
	// Stored holds the bytes of the answer's payload where they have been read, and verified, before; nil has them read. Next gives these
	// very bytes.
	Stored []byte
	// Damage is told of bytes that are not those that were recorded, and returns the error that Next gives for them. Nil
	// wraps it.
	Damage func(error) error
}

// A Clock is that of a run.
type Clock struct {
	NowMS func() int64                                     // in ms, from any beginning
	Wait  func(ctx context.Context, d time.Duration) error // lets time pass; nil does not wait
}

// pause waits for d. The error is ctx's, where that is done before.
func (o *AnswerOptions) pause(ctx context.Context, d time.Duration) error {
	switch {
	case o.Clock == nil:
		return lane.Pause(ctx, nil, d)
	case d <= 0 || o.Clock.Wait == nil:
		return nil
	}
	return o.Clock.Wait(ctx, d)
}

// now is a time of the clock.
func (o *AnswerOptions) now() time.Time {
	if o.Clock == nil {
		return time.Now()
	}
	return time.UnixMilli(o.Clock.NowMS())
}

// A CutError is the end of a recorded answer that did not come to its end.
type CutError struct {
	Text string // the Error of the exchange, or tape.HeldOn
}

func (e *CutError) Error() string { return e.Text }

// An AnswerBody gives the body of a recorded answer, chunk by chunk, each at its time. It is used by one goroutine at a time.
type AnswerBody struct {
	opts   AnswerOptions
	start  time.Time
	r      io.ReadCloser // empty where the bytes are in memory (AnswerOptions.Stored)
	size   int64
	chunks []tape.Chunk // those that have not begun
	left   int64        // bytes of the chunk that has
	rest   int64        // bytes of the whole answer that are left
	cut    string       // the recorded error; "" where the answer came to its end
	buf    []byte
}

// OpenAnswer opens the body of a recorded answer, whose time begins now. store holds the payloads of its tape. The error is
// that of a body that was not kept, is not in the store any more, or does not fit its chunks.
func OpenAnswer(store cas.Store, ex *tape.Exchange, o *AnswerOptions) (*AnswerBody, error) {
	b := &AnswerBody{r: http.NoBody, cut: ex.Error}
	if o != nil {
		b.opts = *o
	}
	b.start = b.opts.now()
	if ex.Response == nil && HasBody(ex.Method, ex.Status) {
		return nil, fmt.Errorf("its body was not kept: %s", ex.Error)
	}
	var err error
	if b.size, err = b.payloadSize(store, ex.Response); err != nil {
		return nil, err
	}
	b.rest = b.size
	if b.chunks, err = checkedChunks(ex.Stream, b.size); err != nil {
		return nil, err
	}
	switch p := ex.Response; {
	case p == nil || b.opts.Stored != nil:
	case p.Inline:
		b.opts.Stored, err = p.Bytes(store)
	default:
		b.r, err = p.Open(store)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// payloadSize is the length of a payload in bytes, as its bytes have it.
func (b *AnswerBody) payloadSize(store cas.Store, p *tape.Payload) (int64, error) {
	switch {
	case p == nil:
		return 0, nil
	case p.Inline:
		return int64(len(p.Text)), nil
	}
	size, err := int64(len(b.opts.Stored)), error(nil)
	if b.opts.Stored == nil {
		size, err = store.Size(p.Hash)
	}
	if err == nil && size != p.Len {
		err = fmt.Errorf("blob %s has %d bytes where %d are named", p.Hash, size, p.Len)
	}
	return size, err
}

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

// Size is the length of the whole body in bytes, before Reveal.
func (b *AnswerBody) Size() int64 { return b.size }

// Prompt reports whether the head belongs with the first chunk, which has bytes. A tape does not say when the head came; that
// it came with the first chunk is what a program that waits for its first byte must not see come earlier.
func (b *AnswerBody) Prompt() bool { return len(b.chunks) > 0 && b.chunks[0].Length > 0 }

// Begin waits until the head is due: with the first chunk. The error is ctx's where that ends before.
func (b *AnswerBody) Begin(ctx context.Context) error {
	c := tape.Chunk{}
	if len(b.chunks) > 0 {
		c = b.chunks[0]
	}
	return b.wait(ctx, c, len(b.chunks) < 2)
}

// Ended reports whether Next gave the last bytes of an answer that came to its end.
func (b *AnswerBody) Ended() bool {
	return b.left == 0 && b.rest == 0 && len(b.chunks) == 0 && b.cut == ""
}

// Next returns the bytes of one chunk, or of a part of one that is longer than 1 MiB, valid until the next call. Errors:
// io.EOF at the end; *CutError where the answer was cut; ctx's where that ends while a chunk or the cut is waited for; what
// Damage makes of bytes that are not those that were recorded.
func (b *AnswerBody) Next(ctx context.Context) ([]byte, error) {
	for b.left == 0 {
		if len(b.chunks) == 0 {
			if b.cut == "" {
				return nil, io.EOF
			}
			return nil, CutAgain(ctx, b.cut, &b.opts)
		}
		c := b.chunks[0]
		if err := b.beforeLast(ctx); err != nil {
			return nil, err
		}
		b.chunks, b.left = b.chunks[1:], c.Length
		if err := b.wait(ctx, c, len(b.chunks) == 0); err != nil {
			return nil, err
		}
	}
	n := min(b.left, maxPiece)
	p, err := b.read(n)
	if err != nil {
		if b.opts.Damage != nil {
			return nil, b.opts.Damage(err)
		}
		return nil, fmt.Errorf("recorded answer is damaged: %w", err)
	}
	b.left, b.rest = b.left-n, b.rest-n
	if b.opts.Reveal != nil {
		p = b.opts.Reveal(p) // no placeholder lies in two chunks
	}
	return p, nil
}

// read returns the next n bytes. A blob tells at its end only whether it is sound, so the last bytes count when the end is there.
func (b *AnswerBody) read(n int64) ([]byte, error) {
	if at := b.size - b.rest; b.opts.Stored != nil {
		return b.opts.Stored[at : at+n : at+n], nil
	}
	if int64(cap(b.buf)) < n {
		b.buf = make([]byte, n)
	}
	p := b.buf[:n]
	if _, err := io.ReadFull(b.r, p); errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF // the end of a blob that was cut is not the answer's
	} else if err != nil || b.rest > n {
		return p, err
	}
	var more [1]byte
	switch _, err := io.ReadFull(b.r, more[:]); {
	case err == nil:
		return nil, errors.New("it has more bytes than are named")
	case errors.Is(err, io.EOF):
		return p, nil
	default:
		return nil, fmt.Errorf("after its last byte: %w", err)
	}
}

// wait waits until a chunk is due, and equal requests let it go; end says that it is the last, which the conversations beside this one let
// go too.
func (b *AnswerBody) wait(ctx context.Context, c tape.Chunk, end bool) error {
	if b.opts.Speed > 0 {
		due := time.Duration(float64(c.TMS) / b.opts.Speed * float64(time.Millisecond))
		if err := b.opts.pause(ctx, due-b.opts.now().Sub(b.start)); err != nil {
			return err
		}
	}
	of := b.opts.Of
	if of == nil {
		return nil
	}
	if end {
		if err := of.order.await(ctx, of, b.opts.Speed > 0, b.opts.Held); err != nil {
			return err
		}
	}
	return of.equals.await(ctx, of, c, end, b.opts.Speed > 0)
}

// beforeLast holds the last chunk of an answer that the program had cancelled for a moment, where the others come at once: what
// the program ended may have been that chunk alone, as a pipeline does whose end has gone by then.
func (b *AnswerBody) beforeLast(ctx context.Context) error {
	if b.cut != tape.Cancelled || b.opts.Speed > 0 || b.opts.Clock != nil || len(b.chunks) != 1 || b.rest == b.size {
		return nil
	}
	return lane.Pause(ctx, nil, reaction)
}

// CutAgain is the end of an exchange that was cut with the error recorded: a *CutError. One that the program cancelled waits
// for it to do so again, and one whose deadline passed does so where answers take their time, or a clock of the run's own passes it; the error is then ctx's where
// that ends, else it says that the program held on.
func CutAgain(ctx context.Context, recorded string, o *AnswerOptions) error {
	switch {
	case recorded == tape.Cancelled:
		if err := o.pause(ctx, o.Patience); err != nil {
			return err
		}
		return &CutError{Text: tape.HeldOn}
	case recorded == DeadlinePassed && (o.Speed > 0 || o.Clock != nil):
		if err := o.pause(ctx, o.Patience); err != nil {
			return err
		}
	}
	return &CutError{Text: recorded}
}

// Given says that the end of the answer has been passed on, or will not be: equal requests may go on (AnswerOptions.Of).
func (b *AnswerBody) Given() {
	if of := b.opts.Of; of != nil {
		of.equals.leave(of)
		of.order.happened(moment{kind: momentOver, rec: of})
	}
}

// Close frees what the body holds. The answer has been given then.
func (b *AnswerBody) Close() error {
	b.Given()
	return b.r.Close()
}
