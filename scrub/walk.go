package scrub

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNesting is how often JSON may be quoted within JSON for a value in it to be found where its escapes differ.
const maxNesting = 3

// maxSlashes is the length of the longest run of backslashes that means something within maxNesting.
const maxSlashes = 1 << maxNesting

// An escaping says how what a text quotes is escaped in it.
type escaping struct {
	nesting int  // how often it was quoted as JSON
	percent bool // whether % begins an escape
}

// match tells whether p stands at i, under any mixture of percent-encoding and JSON escapes.
func (p *pattern) match(t text, i int) (end int, o outcome) {
	for nesting := range maxNesting + 1 {
		end, o, slashes := p.walk(t, i, escaping{nesting, true})
		if o == miss && p.percent {
			var met bool
			end, o, met = p.walk(t, i, escaping{nesting, false})
			slashes = slashes || met
		}
		if o != miss || !slashes {
			return end, o
		}
	}
	return 0, miss
}

// walk matches p at i under one escaping. It says too whether it met a backslash: else the nesting makes no difference.
func (p *pattern) walk(t text, i int, esc escaping) (end int, o outcome, slashes bool) {
	begin := i
	if p.head.mask != 0 {
		if i >= len(t.b) || !p.head.fits(t.b[i]) {
			return 0, miss, false
		}
		i++
	}
	for want := p.text; len(want) > 0; {
		slashes = slashes || i < len(t.b) && t.b[i] == '\\'
		if p.base64 && i > begin {
			if i, o = t.lineEnd(i, esc.nesting); o == more {
				return 0, more, slashes
			}
		}
		n, used, o := t.unit(i, want, esc)
		if o != hit {
			return 0, o, slashes
		}
		i, want = i+n, want[used:]
	}
	if p.tail.mask != 0 {
		slashes = slashes || i < len(t.b) && t.b[i] == '\\'
		i, o = p.tailAt(t, i, esc)
		return i, o, slashes
	}
	return i, hit, slashes
}

// tailAt matches the digit that a value shares with what stands behind it.
func (p *pattern) tailAt(t text, i int, esc escaping) (end int, o outcome) {
	if i, o = t.lineEnd(i, esc.nesting); o == more {
		return 0, more
	}
	if i >= len(t.b) {
		return 0, t.ended()
	}
	if p.tail.fits(t.b[i]) {
		return i + 1, hit
	}
	for _, digit := range "+/" { // which a URL or JSON may escape
		if !p.tail.fits(byte(digit)) {
			continue
		}
		if n, _, o := t.unit(i, []byte{byte(digit)}, esc); o != miss {
			return i + n, o
		}
	}
	return 0, miss
}

// lineEnd skips one end of a line within base64: LF or CR LF, as bytes or escaped.
func (t text) lineEnd(i, nesting int) (end int, o outcome) {
	for range 2 {
		if i >= len(t.b) {
			return i, t.ended()
		}
		n := 0
		if nesting > 0 && t.b[i] == '\\' {
			if n = t.slashes(i); i+n == len(t.b) {
				return i, t.ended()
			}
			if n != 1<<(nesting-1) || t.b[i+n] != 'n' && t.b[i+n] != 'r' {
				return i, hit
			}
		} else if t.b[i] != '\n' && t.b[i] != '\r' {
			return i, hit
		}
		i += n + 1
	}
	return i, hit
}

// slashes counts the backslashes at i, up to one more than mean anything.
func (t text) slashes(i int) int {
	n := 0
	for i+n < len(t.b) && t.b[i+n] == '\\' && n <= maxSlashes {
		n++
	}
	return n
}

// unit matches the beginning of want with one byte or escape at i: n bytes of the text stand for used bytes of want.
func (t text) unit(i int, want []byte, esc escaping) (n, used int, o outcome) {
	if i >= len(t.b) {
		return 0, 0, t.ended()
	}
	switch c := t.b[i]; {
	case c == '\\' && esc.nesting > 0:
		return t.escape(i, want, esc.nesting)
	case c == '%' && esc.percent:
		return t.percent(i, want[0])
	case c == want[0], c == '+' && want[0] == ' ' && esc.percent:
		return 1, 1, hit
	}
	return 0, 0, miss
}

// percent matches one byte with its percent-encoding at i.
func (t text) percent(i int, want byte) (n, used int, o outcome) {
	for k := 1; k <= 2; k++ {
		if i+k == len(t.b) {
			return 0, 0, t.ended()
		}
		if d := t.b[i+k]; !isHex(d) || unhex(d) != want>>(4*(2-k))&15 {
			return 0, 0, miss
		}
	}
	return 3, 1, hit
}

// escape matches the beginning of want with a JSON escape at i. Quoting doubles backslashes: a letter's escape has
// 2^(nesting-1) of them, a quotation mark 2^nesting - 1, a backslash itself 2^nesting.
func (t text) escape(i int, want []byte, nesting int) (n, used int, o outcome) {
	got, letter := t.slashes(i), 1<<(nesting-1)
	if want[0] == '\\' && got >= 2*letter {
		return 2 * letter, 1, hit
	}
	if i+got == len(t.b) {
		return 0, 0, t.ended()
	}
	c := t.b[i+got]
	switch {
	case got == 2*letter-1 && c == '"' && want[0] == '"':
		return got + 1, 1, hit
	case got != letter:
		return 0, 0, miss
	case c == 'u':
		return t.unicode(i, want, letter)
	case unescape(c) == want[0] && want[0] != 0:
		return got + 1, 1, hit
	}
	return 0, 0, miss
}

// unescape returns what the letter of a short escape stands for, and 0 for another byte.
func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case '/', '"', '\\':
		return c
	}
	return 0
}

// unicode matches the beginning of want with \uXXXX, or with two of them for a rune beyond U+FFFF.
func (t text) unicode(i int, want []byte, slashes int) (n, used int, o outcome) {
	r, o := t.codeUnit(i, slashes)
	if o != hit {
		return 0, 0, o
	}
	n = slashes + 5
	if utf16.IsSurrogate(r) {
		low, o := t.codeUnit(i+n, slashes)
		if o != hit {
			return 0, 0, o
		}
		r, n = utf16.DecodeRune(r, low), 2*n
	}
	var buf [utf8.UTFMax]byte
	enc := buf[:utf8.EncodeRune(buf[:], r)]
	if !bytes.HasPrefix(want, enc) {
		return 0, 0, miss
	}
	return n, len(enc), hit
}

// codeUnit reads the escape of one UTF-16 code unit at i.
func (t text) codeUnit(i, slashes int) (r rune, o outcome) {
	for k := range slashes + 5 {
		if i+k >= len(t.b) {
			return 0, t.ended()
		}
		c := t.b[i+k]
		switch {
		case k < slashes && c != '\\', k == slashes && c != 'u', k > slashes && !isHex(c):
			return 0, miss
		case k > slashes:
			r = r<<4 | rune(unhex(c))
		}
	}
	return r, hit
}

// firstByte returns the first byte of what the escape at i stands for. Its outcome is more where the escape is not whole yet.
func (t text) firstByte(i int) (c byte, o outcome) {
	if t.b[i] == '%' {
		switch {
		case i+2 >= len(t.b):
			return 0, t.ended()
		case isHex(t.b[i+1]) && isHex(t.b[i+2]):
			return unhex(t.b[i+1])<<4 | unhex(t.b[i+2]), hit
		}
		return 0, miss
	}
	n := t.slashes(i)
	switch {
	case i+n == len(t.b):
		return 0, t.ended()
	case t.b[i+n] != 'u':
		c = unescape(t.b[i+n])
		return c, hit
	}
	r, o := t.codeUnit(i+n-1, 1)
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
