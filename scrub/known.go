package scrub

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// A known is a secret whose exact value is known.
type known struct {
	rule, value, placeholder string
}

// A pattern is one form in which a known value may stand in a text: the value itself, hex, or the part of its base64
// that does not depend on what stands beside it. Over each of these forms lie escapes, which walk undoes.
type pattern struct {
	of   *known
	text []byte
	// head and tail are base64 digits that hold bits of the value and bits of a neighbour; they are hidden with it. A zero
	// mask means that there is none.
	head, tail edge
	alphabet   *base64.Encoding // of base64, else nil
	percent    bool             // text has a %, which may stand for itself
}

// An edge is a base64 digit of which only the bits of mask are known.
type edge struct{ mask, bits byte }

// patterns returns the forms of a value of minKnown bytes or more.
func patterns(k *known) []*pattern {
	ps := []*pattern{
		{of: k, text: []byte(k.value), percent: strings.Contains(k.value, "%")},
		{of: k, text: []byte(hex.EncodeToString([]byte(k.value)))},
		{of: k, text: []byte(strings.ToUpper(hex.EncodeToString([]byte(k.value))))},
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			p := base64Pattern(k, enc, shift)
			ps = append(ps, p)
			if p.head.mask != 0 { // where the head itself is escaped, the rest is found all the same
				headless := *p
				headless.head = edge{}
				ps = append(ps, &headless)
			}
		}
	}
	return ps
}

// base64Pattern returns the form of a value that begins shift bytes after the beginning of a group of three.
func base64Pattern(k *known, enc *base64.Encoding, shift int) *pattern {
	padded := make([]byte, shift, shift+len(k.value)+2)
	padded = append(padded, k.value...)
	end := len(padded) * 8 // in bits
	padded = append(padded, 0, 0)
	digits := enc.EncodeToString(padded)
	first, last := (shift*8+5)/6, end/6 // the digits that hold bits of the value alone
	p := &pattern{of: k, text: []byte(digits[first:last]), alphabet: enc}
	if n := shift * 8 % 6; n > 0 {
		p.head = edge{byte(1<<(6-n) - 1), digitValue(enc, digits[first-1])}
	}
	if n := end % 6; n > 0 {
		p.tail = edge{byte(1<<n-1) << (6 - n), digitValue(enc, digits[last])}
	}
	return p
}

// digitValue returns the six bits of a base64 digit, and 0xff for another byte.
func digitValue(enc *base64.Encoding, digit byte) byte {
	var out [3]byte
	if _, err := enc.Decode(out[:], []byte{'A', 'A', 'A', digit}); err != nil || digit == '\n' || digit == '\r' {
		return 0xff
	}
	return out[2]
}

func (e edge) fits(enc *base64.Encoding, digit byte) bool {
	v := digitValue(enc, digit)
	return v != 0xff && (v^e.bits)&e.mask == 0
}

// firsts returns the bytes that the form can begin with, escapes undone.
func (p *pattern) firsts() []byte {
	if p.head.mask == 0 {
		return p.text[:1]
	}
	var out []byte
	for c := byte('+'); c <= 'z'; c++ {
		if p.head.fits(p.alphabet, c) {
			out = append(out, c)
		}
	}
	return out
}

// An index finds where a secret may begin. It is never changed: to add a value is to make a new one.
type index struct {
	first  [256]bool            // bytes that may begin a secret
	pairs  [1 << 16 / 64]uint64 // pairs of bytes that may: the filter that most of a text does not pass
	shapes [256][]rule
	known  [256][]*pattern // by the first byte, escapes undone
	any    bool            // a value is known
}

func newIndex(rules []rule) *index {
	x := new(index)
	for _, r := range rules {
		for _, start := range r.starts() {
			if !slices.Contains(x.shapes[start[0]], r) {
				x.shapes[start[0]] = append(x.shapes[start[0]], r)
			}
			x.allow(start[0], start[1])
		}
	}
	return x
}

func (x *index) allow(a, b byte) {
	x.first[a] = true
	pair := uint16(a)<<8 | uint16(b)
	x.pairs[pair>>6] |= 1 << (pair & 63)
}

// with returns an index that knows k too.
func (x *index) with(k *known) *index {
	next := *x
	next.any = true
	for _, p := range patterns(k) {
		for _, c := range p.firsts() {
			next.known[c] = append(slices.Clip(next.known[c]), p)
			next.allowForms(c, p)
		}
	}
	next.allow('\\', 'u')
	next.allow('\\', '\\')
	return &next
}

// allowForms lets through each pair of bytes that can begin p when its first byte is c.
func (x *index) allowForms(c byte, p *pattern) {
	second := p.text[0]
	if p.head.mask == 0 {
		second = p.text[1]
	}
	for _, b := range []byte{second, '%', '\\'} {
		x.allow(c, b)
	}
	if p.alphabet != nil {
		x.allow(c, '\n')
		x.allow(c, '\r')
	}
	if second == ' ' {
		x.allow(c, '+')
	}
	for b := range 256 {
		if isHex(byte(b)) && unhex(byte(b)) == c>>4 {
			x.allow('%', byte(b))
		}
		if unescape(byte(b)) == c {
			x.allow('\\', byte(b))
		}
	}
}
