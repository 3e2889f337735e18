package player

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// harmless passes a terminal's stream on without the sequences that a terminal answers, or that reach beyond its screen.
type harmless struct {
	w       io.Writer
	lex     *vt.Lexer
	base    int64 // stream offset of the present write
	from    int64 // what was not decided of yet
	drop    []span
	string  bool   // a control string was left out whose end may come yet
	pending []byte // an unfinished sequence, from from on
	out     []byte
}

type span struct{ start, end int64 }

func newHarmless(w io.Writer) *harmless {
	h := &harmless{w: w}
	h.lex = vt.NewLexer(h.token)
	return h
}

// token notes what is left out, and how far the stream is decided.
func (h *harmless) token(t *vt.Token) {
	end := t.Kind == vt.TokenEscape && t.Final == '\\' && h.string // ST
	h.string = false
	if end || asks(t) {
		h.drop = append(h.drop, span{t.Start, t.End})
		h.string = t.Kind >= vt.TokenOSC
	}
	if t.Kind == vt.TokenControl && t.Start > h.from {
		return // within a sequence, which is not over
	}
	h.from = max(h.from, t.End)
}

// Write passes on what is whole. What is not waits for the next write; flush passes it on as it is.
func (h *harmless) Write(p []byte) (int, error) {
	at := h.base + int64(len(p)) // of the stream's end
	start := h.base - int64(len(h.pending))
	h.pending = append(h.pending, p...)
	h.base = at
	h.lex.Write(p)
	h.out = h.out[:0]
	slices.SortFunc(h.drop, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	pos, done := start, 0
	for _, d := range h.drop {
		if d.start >= h.from {
			break // within a sequence that is not over
		}
		done++
		if d.start > pos {
			h.out = append(h.out, h.pending[pos-start:d.start-start]...)
		}
		pos = max(pos, d.end)
	}
	h.drop = append(h.drop[:0], h.drop[done:]...)
	whole := max(pos, min(h.from, at))
	if whole > pos {
		h.out = append(h.out, h.pending[pos-start:whole-start]...)
	}
	h.pending = append(h.pending[:0], h.pending[whole-start:]...)
	if len(h.pending) > vt.MaxString { // no sequence is so long: it is a string without an end
		h.out = append(h.out, h.pending...)
		h.pending = h.pending[:0]
	}
	if len(h.out) == 0 {
		return len(p), nil
	}
	_, err := h.w.Write(h.out)
	return len(p), err
}

// asks reports whether a terminal answers t, or does with it what is not on its screen.
func asks(t *vt.Token) bool {
	switch t.Kind {
	case vt.TokenControl:
		return t.Final == 0x05 // ENQ
	case vt.TokenEscape:
		return t.Final == 'Z' // DECID
	case vt.TokenCSI:
		return asksCSI(t)
	case vt.TokenOSC:
		return asksOSC(t.Data)
	case vt.TokenDCS:
		return len(t.Inter) > 0 && (t.Inter[0] == '$' || t.Inter[0] == '+') && t.Final == 'q' // DECRQSS, XTGETTCAP
	case vt.TokenAPC:
		return len(t.Data) > 0 && t.Data[0] == 'G' // kitty graphics: they are answered
	}
	return false
}

func asksCSI(t *vt.Token) bool {
	switch t.Final {
	case 'c', 'n', 'x': // DA, DSR, DECREQTPARM
		return len(t.Inter) == 0
	case 'p':
		return len(t.Inter) > 0 && t.Inter[0] == '$' // DECRQM
	case 'q':
		return t.Prefix == '>' // XTVERSION
	case 'u', 'm':
		return t.Prefix == '?' // kitty keyboard, XTQMODKEYS
	case 'i':
		return true // media copy
	case 'w', 'y':
		return len(t.Inter) > 0 // DECRQPSR, DECRQCRA, DECTST
	case 't': // windows: reports, and what moves them
		return len(t.Inter) == 0 && len(t.Params) > 0 && t.Params[0] < 22
	case 'S':
		return t.Prefix == '?' // XTSMGRAPHICS
	}
	return false
}

// asksOSC tells of colours that are asked for, and of the clipboard.
func asksOSC(data []byte) bool {
	if bytes.HasPrefix(data, []byte("52;")) {
		return true
	}
	for f := range bytes.SplitSeq(data, []byte(";")) {
		if len(f) == 1 && f[0] == '?' {
			return true
		}
	}
	return false
}

// flush passes on an unfinished sequence.
func (h *harmless) flush() error {
	if len(h.pending) == 0 {
		return nil
	}
	_, err := h.w.Write(h.pending)
	h.pending = h.pending[:0]
	return err
}
