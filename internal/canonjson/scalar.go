package canonjson

import (
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// number reads a number by JSON's grammar, which is narrower than strconv's.
func (p *parser) number() (Value, error) {
	start := p.at
	if p.src[p.at] == '-' {
		p.at++
	}
	first := p.at
	if p.digits() == 0 {
		return Value{}, p.unexpected("a digit")
	}
	if p.src[first] == '0' && p.at > first+1 {
		return Value{}, &Error{first, "a number with a leading zero"}
	}
	if p.at < len(p.src) && p.src[p.at] == '.' {
		p.at++
		if p.digits() == 0 {
			return Value{}, p.unexpected("a digit")
		}
	}
	if p.at < len(p.src) && (p.src[p.at] == 'e' || p.src[p.at] == 'E') {
		p.at++
		if p.at < len(p.src) && (p.src[p.at] == '+' || p.src[p.at] == '-') {
			p.at++
		}
		if p.digits() == 0 {
			return Value{}, p.unexpected("a digit")
		}
	}
	text := p.src[start:p.at]
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, &Error{start, "a number beyond the range of a double"}
	}
	if Holds(f, text) {
		text = ""
	}
	return Value{Kind: Number, Num: f, Str: text}, nil
}

// digits skips decimal digits and returns how many there were.
func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.src) && p.src[p.at] >= '0' && p.src[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// str reads a string. One without escapes is a part of the source; only others are built.
func (p *parser) str() (string, error) {
	p.at++
	start := p.at
	if p.at = textEnd(p.src, start); p.at == len(p.src) {
		return "", p.unexpected("the end of a string")
	}
	switch p.src[p.at] {
	case '"':
		p.at++
		return p.src[start : p.at-1], nil
	case '\\':
		return p.escaped(start)
	}
	return "", p.fail("a control character in a string")
}

// escaped reads the rest of a string that began at start and has an escape at p.at. It is put together in a buffer that all
// strings of a parse share: text of programs is full of escapes.
func (p *parser) escaped(start int) (string, error) {
	out := p.text[:0]
	out = append(out, p.src[start:p.at]...)
	for p.at < len(p.src) {
		from := p.at
		p.at = textEnd(p.src, from)
		out = append(out, p.src[from:p.at]...)
		if p.at == len(p.src) {
			break
		}
		switch p.src[p.at] {
		case '"':
			p.at++
			p.text = out
			return string(out), nil
		case '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			return "", p.fail("a control character in a string")
		}
	}
	return "", p.unexpected("the end of a string")
}

// textEnd returns the offset, from i on, of the first byte that does not stand for itself in a string; len(s) for none. It
// looks at eight bytes at once, in the way that finds a zero byte in a word: the lowest one that it marks is one.
func textEnd(s string, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, slash := w^ones*'"', w^ones*'\\'
		if m := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(s) && !endsText[s[i]] {
		i++
	}
	return i
}

// endsText holds the bytes that do not stand for themselves in a string.
var endsText = func() (set [256]bool) {
	for c := range 0x20 {
		set[c] = true
	}
	set['"'], set['\\'] = true, true
	return set
}()

var shortEscapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads one escape, both halves of a surrogate pair included.
func (p *parser) escape() (rune, error) {
	start := p.at
	p.at++
	if p.at == len(p.src) {
		return 0, p.unexpected("an escape")
	}
	if r := shortEscapes[p.src[p.at]]; r != 0 {
		p.at++
		return rune(r), nil
	}
	if p.src[p.at] != 'u' {
		return 0, p.unexpected("an escape")
	}
	r, ok := p.unit(start)
	if !ok {
		return 0, &Error{start, "\\u without four hex digits"}
	}
	if !utf16.IsSurrogate(r) {
		p.at = start + 6
		return r, nil
	}
	low, ok := p.unit(start + 6)
	pair := utf16.DecodeRune(r, low)
	if !ok || pair == utf8.RuneError {
		return 0, &Error{start, "half of a surrogate pair"}
	}
	p.at = start + 12
	return pair, nil
}

// unit reads the code unit of the \uXXXX that stands at offset i.
func (p *parser) unit(i int) (rune, bool) {
	if i+6 > len(p.src) || p.src[i] != '\\' || p.src[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.src[i+2 : i+6]) {
		d := strings.IndexByte(hexDigits, c|0x20)
		if d < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}
