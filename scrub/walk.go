package scrub

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// maxNesting is how often JSON may be quoted within JSON for a value in it to be found where its escapes differ.
const maxNesting = 3

// maxPercent is how often a text may be percent-encoded. Below it JSON may be quoted: %5Cu0063 is the letter c too.
const maxPercent = 2

// maxSlashes is the length of the longest run of backslashes that means something within maxNesting.
const maxSlashes = 1 << maxNesting

// A walker matches one pattern at one place, under one depth of escapes.
type walker struct {
	t       text
	p       *pattern
	nesting int // how often the text was quoted as JSON
	percent int // how often it may have been percent-encoded
	slashed bool
	met     trace
}

// match tells whether p stands at i, under any mixture of percent-encoding and JSON escapes. It returns what is to be
// replaced: one span, or one in each of several events of a stream (see bridge).
func (p *pattern) match(t text, i int) (spans []span, o outcome) {
	for percent := maxPercent; ; {
		for nesting := range maxNesting + 1 {
			w := walker{t: t, p: p, nesting: nesting, percent: percent}
			if spans, o = w.walk(i); o != miss {
				return spans, o
			}
			if !w.slashed { // else the nesting makes no difference
				break
			}
		}
		if percent--; percent < 0 || !p.percent {
			return nil, miss
		}
	}
}

func (w *walker) walk(i int) (spans []span, o outcome) {
	begin := i
	if w.p.head.Mask != 0 {
		if i >= len(w.t.b) || !w.p.head.Fits(w.t.b[i]) {
			return nil, miss
		}
		w.met.Head = placeholders.DigitValue(w.t.b[i])
		i++
	}
	i, want, o := w.run(i, w.p.text, i > begin)
	if o == miss && w.p.bridges && len(want) < len(w.p.text) && w.t.streams && i < len(w.t.b) && w.t.b[i] == '"' {
		return w.bridged(begin, i, want)
	}
	if o != hit {
		return nil, o
	}
	if w.p.tail.Mask != 0 {
		if i, o = w.tail(i); o != hit {
			return nil, o
		}
	}
	return []span{w.span(begin, i)}, hit
}

func (w *walker) span(start, end int) span {
	return span{from: start, start: start, end: end, rank: knownRank, rule: w.p.of.rule, known: w.p.of, form: w.form()}
}

// run matches want at i and returns where it came to, and what of want is left there. inside says that the pattern has
// begun already.
func (w *walker) run(i int, want []byte, inside bool) (end int, left []byte, o outcome) {
	for len(want) > 0 {
		if w.p.base64 && inside {
			if i, o = w.lineEnd(i, len(w.p.text)-len(want)); o == more {
				return i, want, more
			}
		}
		n, used, o := w.unit(i, want)
		if o != hit {
			return i, want, o
		}
		i, want, inside = i+n, want[used:], true
	}
	return i, nil, hit
}

// tail matches the digit that a value shares with what stands behind it.
func (w *walker) tail(i int) (end int, o outcome) {
	if i, o = w.lineEnd(i, len(w.p.text)); o == more {
		return 0, more
	}
	if i >= len(w.t.b) {
		return 0, w.t.ended()
	}
	if w.p.tail.Fits(w.t.b[i]) {
		w.met.Tail = placeholders.DigitValue(w.t.b[i])
		return i + 1, hit
	}
	for _, digit := range "+/" { // which a URL or JSON may escape
		if !w.p.tail.Fits(byte(digit)) {
			continue
		}
		if n, _, o := w.unit(i, []byte{byte(digit)}); o != miss {
			w.met.Tail = placeholders.DigitValue(byte(digit))
			return i + n, o
		}
	}
	return 0, miss
}

// lineEnd skips one end of a line within base64: LF or CR LF, as bytes or escaped. at is how many digits stand before it.
func (w *walker) lineEnd(i, at int) (end int, o outcome) {
	begin := i
	for range 2 {
		if i >= len(w.t.b) {
			return i, w.t.ended()
		}
		c, n, o := w.t.peel(i, w.percent)
		if o == more {
			return i, more
		}
		if o == hit && w.nesting > 0 && c == '\\' {
			w.slashed = true
			count, length := w.t.slashes(i, w.percent)
			letter, k, o := w.t.peel(i+length, w.percent)
			if o == more {
				return i, more
			}
			if o == miss || count != 1<<(w.nesting-1) || letter != 'n' && letter != 'r' {
				break
			}
			n = length + k
		} else if w.slashed = w.slashed || c == '\\'; o == miss || c != '\n' && c != '\r' {
			break
		}
		i += n
	}
	if i > begin {
		w.met.line(at, w.t.b[begin:i])
	}
	return i, hit
}

// peel returns the byte at i, up to depth layers of percent-encoding undone, and its length in the text. It is a miss at the end of the
// text and where an escape does not end in digits.
func (t text) peel(i, depth int) (c byte, n int, o outcome) {
	if i >= len(t.b) {
		return 0, 0, t.ended()
	}
	if c, n = t.b[i], 1; c != '%' || depth == 0 {
		return c, n, hit
	}
	for range depth {
		if c != '%' {
			break
		}
		for k := range 2 {
			if i+n+k >= len(t.b) {
				return 0, 0, t.ended()
			}
			if !chars.IsHex(t.b[i+n+k]) {
				return 0, 0, miss
			}
		}
		c, n = chars.Unhex(t.b[i+n])<<4|chars.Unhex(t.b[i+n+1]), n+2
	}
	return c, n, hit
}

// lengthOf returns the length in the text of the n bytes at i, which are there.
func (w *walker) lengthOf(i, n int) (length int) {
	for range n {
		_, k, _ := w.t.peel(i+length, w.percent)
		length += k
	}
	return length
}

// slashes counts the backslashes at i, up to one more than mean anything, and says how long they are in the text, where percent layers
// of percent-encoding may lie over it.
func (t text) slashes(i, percent int) (count, length int) {
	for count <= maxSlashes {
		c, n, o := t.peel(i+length, percent)
		if o != hit || c != '\\' {
			break
		}
		count, length = count+1, length+n
	}
	return count, length
}

// unit matches the beginning of want with one byte or escape at i: n bytes of the text stand for used bytes of want.
func (w *walker) unit(i int, want []byte) (n, used int, o outcome) {
	c, n, o := w.t.peel(i, w.percent)
	if o != hit {
		return 0, 0, o
	}
	w.slashed = w.slashed || c == '\\'
	switch {
	case c == '\\' && w.nesting > 0:
		if n, used, o = w.escape(i, want); o == hit {
			w.met.unit(w.t.b[i : i+n])
			w.met.JSON = w.nesting
		}
		return n, used, o
	case c == '"' && want[0] == '"' && w.t.streams && w.nesting > 0:
		return 0, 0, miss // it ends the string
	case c == want[0]:
		w.slashed = w.slashed || c == '"' // may be escaped elsewhere in the stream
		w.met.unit(w.t.b[i : i+n])
		return n, 1, hit
	case c == '+' && want[0] == ' ' && w.percent > 0: // in the outer layer, or in the inner one
		w.met.unit(w.t.b[i : i+n])
		w.met.Plus, w.met.Twice = true, w.met.Twice || n > 1
		return n, 1, hit
	}
	return 0, 0, miss
}

// escape matches the beginning of want with a JSON escape at i. Quoting doubles backslashes: a letter's escape has
// 2^(nesting-1) of them, a quotation mark 2^nesting - 1, a backslash itself 2^nesting.
func (w *walker) escape(i int, want []byte) (n, used int, o outcome) {
	got, length := w.t.slashes(i, w.percent)
	letter := 1 << (w.nesting - 1)
	if want[0] == '\\' && got >= 2*letter {
		return w.lengthOf(i, 2*letter), 1, hit
	}
	c, k, o := w.t.peel(i+length, w.percent)
	if o != hit {
		return 0, 0, o
	}
	switch {
	case got == 2*letter-1 && c == '"' && want[0] == '"':
		return length + k, 1, hit
	case got != letter:
		return 0, 0, miss
	case c == 'u':
		return w.unicode(i, want)
	case unescape(c) == want[0] && want[0] != 0:
		w.met.Slash = w.met.Slash || want[0] == '/'
		return length + k, 1, hit
	}
	return 0, 0, miss
}

// unicode matches the beginning of want with \uXXXX, or with two of them for a rune beyond U+FFFF.
func (w *walker) unicode(i int, want []byte) (n, used int, o outcome) {
	r, n, o := w.codeUnit(i)
	if o != hit {
		return 0, 0, o
	}
	if utf16.IsSurrogate(r) {
		low, k, o := w.codeUnit(i + n)
		if o != hit {
			return 0, 0, o
		}
		r, n = utf16.DecodeRune(r, low), n+k
	}
	var buf [utf8.UTFMax]byte
	enc := buf[:utf8.EncodeRune(buf[:], r)]
	if !bytes.HasPrefix(want, enc) {
		return 0, 0, miss
	}
	w.met.codePoint(r)
	return n, len(enc), hit
}

// codeUnit reads the escape of one UTF-16 code unit at i, and its length.
func (w *walker) codeUnit(i int) (r rune, n int, o outcome) {
	slashes := 1 << max(w.nesting-1, 0)
	for k := range slashes + 5 {
		c, length, o := w.t.peel(i+n, w.percent)
		switch {
		case o != hit:
			return 0, 0, o
		case k < slashes && c != '\\', k == slashes && c != 'u', k > slashes && !chars.IsHex(c):
			return 0, 0, miss
		case k > slashes:
			r = r<<4 | rune(chars.Unhex(c))
		}
		n += length
	}
	return r, n, hit
}

// firstByte returns the first byte of what the escape at i stands for. Its outcome is more where the escape is not whole yet.
func (t text) firstByte(i int) (c byte, o outcome) {
	w := walker{t: t, percent: maxPercent}
	if c, _, o = w.t.peel(i, w.percent); o != hit || c != '\\' {
		return c, o
	}
	count, length := w.t.slashes(i, w.percent)
	letter, _, o := w.t.peel(i+length, w.percent)
	if o != hit {
		return 0, o
	}
	if letter != 'u' {
		return unescape(letter), hit
	}
	r, _, o := w.codeUnit(i + w.lengthOf(i, count-1))
	if o != hit {
		return 0, o
	}
	if utf16.IsSurrogate(r) {
		r = utf16.DecodeRune(r, 0xdc00) // the other half does not change the first byte
	}
	var buf [utf8.UTFMax]byte
	utf8.EncodeRune(buf[:], r)
	return buf[0], hit
}

// formOn is the form in which a value stands as raw; "" where it stands as it is, or in none that has a name.
func formOn(k *known, raw []byte) string {
	if string(raw) == k.value || !names.Searchable(k.value) {
		return ""
	}
	p := &pattern{of: k, text: []byte(k.value), percent: strings.Contains(k.value, "%")}
	spans, o := p.match(wholeText(string(raw)), 0)
	if o != hit || len(spans) != 1 || spans[0].end != len(raw) {
		return ""
	}
	return spans[0].form
}

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
