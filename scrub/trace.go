package scrub

import (
	"bytes"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// A trace is what a walker met on its way through one value.
type trace struct {
	head, tail byte // base64 digits that are shared
	units      int
	percents   int // of them with percent-encoding in it
	full       int // of them percent-encoded altogether
	lower      bool
	twice      bool
	plus       bool
	nesting    int // of the JSON that something was escaped in; 0 for nothing
	html       bool
	nonASCII   bool
	ascii      bool
	slash      bool
	lines      int    // ends of lines
	at         [2]int // digits before the first two
	crlf       bool
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
	m.twice = m.twice || twice
	if len(raw) == 3*escapes || twice {
		m.full++
	}
	for i, c := range raw {
		if c == '%' {
			m.lower = m.lower || bytes.ContainsAny(raw[i:min(i+3, len(raw))], "abcdef")
		}
	}
}

func (m *trace) codePoint(r rune) {
	switch {
	case r == '<' || r == '>' || r == '&':
		m.html = true
	case r >= utf8.RuneSelf:
		m.nonASCII = true
	case r >= ' ' && r != 0x7f:
		m.ascii = true
	}
}

// line notes the end of a line behind at digits.
func (m *trace) line(at int, raw []byte) {
	if m.lines < len(m.at) {
		m.at[m.lines] = at
	}
	m.lines++
	m.crlf = m.crlf || bytes.ContainsAny(raw, "\rrDd") // as a byte, \r or %0D
	if raw[0] == '\\' {
		m.nesting = max(m.nesting, 1)
	}
	if raw[0] == '%' {
		m.percents++
	}
}

// form returns the form of what was walked through, "" for the value as it is.
func (w *walker) form() string {
	m, p := &w.met, w.p
	f := placeholders.Form{Kind: p.kind, Shift: p.shift, Head: placeholders.NoBits, Tail: placeholders.NoBits, CRLF: m.crlf, JSON: m.nesting,
		HTML: m.html, NonASCII: m.nonASCII, All: m.ascii, Slash: m.slash, Percent: m.percents > 0 || m.plus, Lower: m.lower,
		Everyone: m.full > 1 && m.full == m.units, Plus: m.plus, Twice: m.twice}
	if p.head.Mask != 0 {
		f.Head = p.head.Before(m.head)
	}
	if p.tail.Mask != 0 {
		f.Tail = p.tail.After(m.tail)
	}
	if m.lines > 0 {
		f.First = m.at[0]
	}
	if m.lines > 1 {
		f.Width = m.at[1] - m.at[0]
	}
	return f.String()
}
