package process

import (
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/ttyscrub"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// shownLimit is how much of what a terminal showed is looked at at once, in bytes, for which it is in memory.
const shownLimit = 8 << 20

// A shown holds what a terminal showed until it is looked at: a secret may stand on the screen alone, in pieces among the bytes.
type shown struct {
	o     ttyscrub.Options
	sizes []ttyscrub.Resize // since the first byte held
	held  []byte
}

// NewTerminalStream is NewStream for what a terminal of a size shows. What only its screen has whole is masked with '*'.
func NewTerminalStream(store cas.Store, s *scrub.Scrubber, m *scrub.Masker, rows, cols int) *Stream {
	st := NewStream(store, s, m)
	st.shown = &shown{o: ttyscrub.Options{Scrub: s, KeepEmail: true, Rows: rows, Cols: cols}}
	return st
}

// Resize says that the terminal has another size from here on. Of another stream it does nothing.
func (s *Stream) Resize(rows, cols int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown != nil {
		s.shown.sizes = append(s.shown.sizes, ttyscrub.Resize{Offset: int64(len(s.shown.held)), Rows: rows, Cols: cols})
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
	ttyscrub.MaskShown(h.held, h.sizes, &h.o)
	_, err := w.Write(h.held)
	if n := len(h.sizes); n > 0 {
		h.o.Rows, h.o.Cols = h.sizes[n-1].Rows, h.sizes[n-1].Cols
	}
	h.held, h.sizes = h.held[:0], h.sizes[:0]
	return err
}
