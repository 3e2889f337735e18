package process

import (
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

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
