package scrub

import (
	"bytes"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// A trace is what a walker met on its way through one value: its form, and what only the whole of it tells. Head and Tail are the
// base64 digits that are shared.
type trace struct {
	placeholders.Form
	units    int
	percents int // of them with percent-encoding in it
	full     int // of them percent-encoded altogether
	lines    int // ends of lines
}

// unit notes the bytes of the text that stand for a part of the value.
func (m *trace) unit(raw []byte) {
	m.units++
	escapes := bytes.Count(raw, []byte("%"))
	if escapes == 0 || len(raw) == 1 {
		return
	}
	m.percents++
	twice := bytes.HasPrefix(raw, []byte("%25")) && len(raw) > 3
	m.Twice = m.Twice || twice
	if len(raw) == 3*escapes || twice {
		m.full++
	}
	for i, c := range raw {
		if c == '%' {
			m.Lower = m.Lower || bytes.ContainsAny(raw[i:min(i+3, len(raw))], "abcdef")
		}
	}
}

func (m *trace) codePoint(r rune) {
	m.HTML = m.HTML || r == '<' || r == '>' || r == '&'
	m.NonASCII = m.NonASCII || r >= utf8.RuneSelf
	m.All = m.All || r >= ' ' && r < 0x7f && r != '<' && r != '>' && r != '&'
}

// line notes the end of a line behind at digits.
func (m *trace) line(at int, raw []byte) {
	switch m.lines++; m.lines {
	case 1:
		m.First = at
	case 2:
		m.Width = at - m.First
	}
	m.CRLF = m.CRLF || bytes.ContainsAny(raw, "\rrDd") // as a byte, \r or %0D
	switch raw[0] {
	case '\\':
		m.JSON = max(m.JSON, 1)
	case '%':
		m.percents++
	}
}

// form returns the form of what was walked through, "" for the value as it is.
func (w *walker) form() string {
	f, p := w.met.Form, w.p
	f.Kind, f.Shift, f.Head, f.Tail = p.kind, p.shift, placeholders.NoBits, placeholders.NoBits
	f.Percent, f.Everyone = w.met.percents > 0 || f.Plus, w.met.full > 1 && w.met.full == w.met.units
	if p.head.Mask != 0 {
		f.Head = p.head.Before(w.met.Head)
	}
	if p.tail.Mask != 0 {
		f.Tail = p.tail.After(w.met.Tail)
	}
	return f.String()
}
