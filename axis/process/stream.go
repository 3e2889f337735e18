package process

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/internal/stopread"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// MaskLimit is the longest stream, in bytes, whose digest is taken after masking, for which it is read into memory. The
// digest of a longer one is that of its scrubbed bytes: exact, but not blind to volatile facts.
const MaskLimit = 64 << 20

// A Stream keeps, scrubbed, what one standard stream carried. Write what passes, then Finish. It is safe for one writer
// and one finisher at once, for a stream that never ends is finished while its relay still waits for the next byte.
type Stream struct {
	store cas.Store
	mask  *masks.Masker

	mu    sync.Mutex
	shown *shown        // of a terminal; else nil
	clean *scrub.Writer // scrubs into spool
	spool *spool.Spool
	done  bool
	kept  *Kept // kept and err are what Finish returned, once done
	err   error
}

// Kept is what a finished Stream carried.
type Kept struct {
	Payload *tape.Payload
	Digest  cas.Digest // by which the streams of two runs compare
	Masked  bool       // false where the stream was longer than MaskLimit, so that Digest is the payload's hash
}

// NewStream returns a stream that keeps its bytes in store.
func NewStream(store cas.Store, s *scrub.Scrubber, m *masks.Masker) *Stream {
	sp := spool.New(store)
	return &Stream{store: store, mask: m, clean: s.Writer(sp), spool: sp}
}

// Write keeps p. After Finish it drops p. The error is the store's, and stays: what follows is not kept.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return len(p), nil
	}
	if s.shown != nil {
		return s.shown.write(s.clean, p)
	}
	return s.clean.Write(p)
}

// Finish ends the stream and returns what it carried, the same whenever it is called again. It waits for a Write that the
// store delays. The error is the store's; the stream is lost then.
func (s *Stream) Finish() (*Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.done = true
		s.kept, s.err = s.finish()
	}
	return s.kept, s.err
}

func (s *Stream) finish() (*Kept, error) {
	var failed error
	if s.shown != nil {
		failed = s.shown.flush(s.clean)
	}
	p, err := s.spool.Finish(errors.Join(failed, s.clean.Close()))
	if err != nil {
		return nil, err
	}
	if p.Len > MaskLimit {
		return &Kept{Payload: p, Digest: p.Hash}, nil
	}
	b, err := p.Bytes(s.store)
	if err != nil {
		return nil, err
	}
	return &Kept{Payload: p, Digest: s.mask.Digest(b), Masked: true}, nil
}

// What a terminal showed is in memory until it is looked at, which holds up who writes more. What was there before is looked at
// again, for a secret may be drawn over the cut.
const (
	shownLimit = 1 << 20   // bytes that are looked at at once
	shownAgain = 128 << 10 // of them that were passed on before
)

// A shown holds what a terminal showed until it is looked at: a secret may stand on the screen alone, in pieces among the bytes.
type shown struct {
	o     tty.Options
	sizes []tty.Resize // behind the first byte held
	held  []byte
	again int // of held that was passed on
}

// NewTerminalStream is NewStream for what a terminal of a size shows. What only its screen has whole is masked with '*'.
func NewTerminalStream(store cas.Store, s *scrub.Scrubber, m *masks.Masker, rows, cols int) *Stream {
	st := NewStream(store, s, m)
	st.shown = &shown{o: tty.Options{Scrub: s, KeepEmail: true, Rows: rows, Cols: cols}}
	return st
}

// Resize says that the terminal has another size from here on. Of another stream it does nothing.
func (s *Stream) Resize(rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown != nil {
		s.shown.sizes = append(s.shown.sizes, tty.Resize{Offset: int64(len(s.shown.held)), Rows: rows, Cols: cols})
	}
}

func (h *shown) write(w io.Writer, p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), shownLimit-len(h.held))
		h.held = append(h.held, rest[:n]...)
		if rest = rest[n:]; len(h.held) < shownLimit {
			break
		}
		if err := h.flush(w); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// flush passes on what is held.
func (h *shown) flush(w io.Writer) error {
	tty.MaskShown(h.held, h.sizes, &h.o)
	_, err := w.Write(h.held[h.again:])
	cut := max(len(h.held)-shownAgain, 0)
	sizes := h.sizes[:0]
	for _, z := range h.sizes {
		if z.Offset -= int64(cut); z.Offset > 0 {
			sizes = append(sizes, z)
		} else {
			h.o.Rows, h.o.Cols = z.Rows, z.Cols
		}
	}
	h.held, h.sizes = append(h.held[:0], h.held[cut:]...), sizes
	h.again = len(h.held)
	return err
}

// relayBuffer is the size of one read of a relay, in bytes: a pipe's capacity.
const relayBuffer = 64 << 10

// RelayOutput passes what the program writes into from on to the caller's to, and keeps it in s, until from ends. It
// closes from, also when the caller stopped reading, so that the program learns of that by SIGPIPE or EPIPE (a terminal's
// by SIGHUP) as it would have without us. The error is that of keeping, which Stream.Finish returns too; the bytes pass
// all the same.
func RelayOutput(to io.Writer, from io.ReadCloser, s *Stream) error {
	defer from.Close()
	return relay(to, from, s) // ends at EOF of a pipe, EIO of a terminal whose last user has gone
}

// RelayInput passes the caller's from on to the program's to, a pipe, until from ends or is stopped or the program closes
// its end, and then closes to. What it takes from the caller is kept in s before it is passed on, so that whatever the
// program has read is on the tape; what the program left unread in the pipe is there too. The error is that of keeping,
// as for RelayOutput.
func RelayInput(to *os.File, from *stopread.Reader, s *Stream) error {
	defer to.Close()
	from.Until(to)
	return relay(to, from, s)
}

// relay copies until either side ends. It keeps first, and goes on when that fails.
func relay(to io.Writer, from io.Reader, s *Stream) error {
	buf := make([]byte, relayBuffer)
	var failed error
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, errKeep := s.Write(buf[:n]); errKeep != nil && failed == nil {
				failed = errKeep
			}
			if _, errTo := to.Write(buf[:n]); errTo != nil {
				return failed
			}
		}
		if err != nil {
			return failed
		}
	}
}
