// Package chars tells the characters of texts that are looked through byte by byte: sets of them, where words begin, and by three bytes
// whether anything may begin at a place at all (Filter).
package chars

import (
	"encoding/binary"
	"slices"
)

// A Set is a set of bytes.
type Set [256]bool

// NewSet returns the ASCII letters and digits and the bytes of others.
func NewSet(others string) *Set {
	var s Set
	for c := '0'; c <= 'z'; c++ {
		s[c] = IsAlnum(byte(c))
	}
	for i := range len(others) {
		s[others[i]] = true
	}
	return &s
}

// The sets that more than one rule uses.
var (
	Alnum  = NewSet("")
	Word   = NewSet("_")
	Token  = NewSet("_-")
	Bearer = NewSet("_-.~+/=")
	Base64 = NewSet("+/=")
	Name   = NewSet("_-.")
	Digits = func() *Set {
		var s Set
		for c := '0'; c <= '9'; c++ {
			s[c] = true
		}
		return &s
	}()
)

// Run returns the end of the run of set at i.
func (set *Set) Run(b []byte, i int) int {
	for i < len(b) && set[b[i]] {
		i++
	}
	return i
}

// IsDigit and those below tell the kinds of ASCII.
func IsDigit(c byte) bool { return c-'0' < 10 }

// IsLower tells a small letter.
func IsLower(c byte) bool { return c >= 'a' && c <= 'z' }

// IsUpper tells a capital.
func IsUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// IsLetter tells a letter.
func IsLetter(c byte) bool { return IsLower(c | 0x20) }

// IsAlnum tells a letter or a digit.
func IsAlnum(c byte) bool { return IsDigit(c) || IsLetter(c) }

// IsHex tells a hex digit.
func IsHex(c byte) bool { return IsDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// IsLowerHex tells one in lower case.
func IsLowerHex(c byte) bool { return IsDigit(c) || c >= 'a' && c <= 'f' }

// IsBlank tells a blank, a tab or the end of a line.
func IsBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Unhex returns the value of a hex digit.
func Unhex(c byte) byte {
	if IsDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// Mixture counts the digits and the letters of b.
func Mixture[T string | []byte](b T) (digits, letters int) {
	for i := range len(b) {
		switch c := b[i]; {
		case IsDigit(c):
			digits++
		case IsLetter(c):
			letters++
		}
	}
	return digits, letters
}

// HasPrefix tells whether s stands at i.
func HasPrefix(b []byte, i int, s string) bool {
	return len(b)-i >= len(s) && string(b[i:i+len(s)]) == s
}

// LookBehind is how far Boundary looks back from where it stands, in bytes. A stream keeps so many after it passed them on.
const LookBehind = 16

// Boundary tells whether a word can begin at i: no letter, digit or underscore stands before it, or one that is the end of an escape
// (\n and \u003c of JSON, %3D of a URL, a colour of a terminal).
func Boundary(b []byte, i int) bool {
	return i == 0 || !Word[b[i-1]] || AfterEscape(b[max(0, i-LookBehind):i])
}

// AfterEscape tells whether what ends in before ends in an escape.
func AfterEscape(before []byte) bool {
	n := len(before)
	at := func(back int) byte {
		if back > n {
			return 0
		}
		return before[n-back]
	}
	switch last := at(1); {
	case at(2) == '\\' && (last == 'n' || last == 'r' || last == 't' || last == 'b' || last == 'f'):
		return true
	case at(3) == '%' && IsHex(at(2)) && IsHex(last):
		return true
	case at(6) == '\\' && at(5) == 'u' && IsHex(at(4)) && IsHex(at(3)) && IsHex(at(2)) && IsHex(last):
		return true
	case last == 'm' || last == 'K' || last == 'G' || last == 'H':
		return afterParameters(before[:n-1])
	}
	return false
}

// afterParameters tells whether b ends in the introducer and the parameters of a terminal's control sequence. The introducer may stand
// as a byte or escaped (\u001b, \x1b, \033, \e).
func afterParameters(b []byte) bool {
	for len(b) > 0 && (IsDigit(b[len(b)-1]) || b[len(b)-1] == ';') {
		b = b[:len(b)-1]
	}
	n := len(b)
	if n < 2 || b[n-1] != '[' {
		return false
	}
	c := b[n-2]
	return c == 0x1b || c == 'b' || c == 'B' || c == '3' || c == 'e'
}

// UUIDLen is the length of a UUID in bytes.
const UUIDLen = 36

// UUIDAt returns the end of the UUID at i: 8-4-4-4-12 hex digits.
func UUIDAt(b []byte, i int) (end int, ok bool) {
	const dashes = 1<<8 | 1<<13 | 1<<18 | 1<<23
	if len(b)-i < UUIDLen || b[i+8] != '-' {
		return 0, false
	}
	for k, c := range b[i : i+UUIDLen] {
		if dash := dashes>>k&1 == 1; dash != (c == '-') || !dash && !IsHex(c) {
			return 0, false
		}
	}
	return i + UUIDLen, true
}

// A Filter tells by three bytes whether something may begin where they stand. Most places of most texts do not pass it,
// so that what is looked for costs little where it is not. It is three bytes, and not two, because the forms of twenty
// known values begin with a quarter of all pairs of letters.
type Filter struct {
	first [256]bool
	*pairs
	third []ByteSet
	every int // where the row of AllowEvery stands, and one; 0 for nowhere
}

// pairs are what a Filter knows of each pair of bytes. They hold no pointers and are a memory of their own, which the garbage
// collector does not look into.
type pairs struct {
	near [1 << 16]uint32 // the low five bits of its third bytes: asked at every place; 0 for none
	rows [1 << 16]uint16 // where all of these stand
}

// NewFilter returns one that lets nothing through.
func NewFilter() Filter { return Filter{pairs: new(pairs)} }

// Clone returns a copy, to which may be added.
func (f *Filter) Clone() Filter {
	own := *f.pairs
	return Filter{f.first, &own, slices.Clone(f.third), f.every}
}

// A ByteSet has a bit for each byte.
type ByteSet [4]uint64

// Add adds a byte.
func (s *ByteSet) Add(c byte) { s[c>>6] |= 1 << (c & 63) }

// Has tells whether a byte was added.
func (s *ByteSet) Has(c byte) bool { return s[c>>6]>>(c&63)&1 == 1 }

// pairOf is the pair of a and b. Those that begin with one byte lie side by side: a filter of few first bytes touches few pages.
func pairOf(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

// Allow lets three bytes pass.
func (f *Filter) Allow(a, b, c byte) {
	f.row(a, b).Add(c)
	f.near[pairOf(a, b)] |= 1 << (c & 31)
}

// AllowAny lets the pair pass with any third byte.
func (f *Filter) AllowAny(a, b byte) {
	*f.row(a, b) = ByteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	f.near[pairOf(a, b)] = ^uint32(0)
}

// AllowEvery is AllowAny for many pairs: they share one row, and so Row does not tell them apart.
func (f *Filter) AllowEvery(a, b byte) {
	if f.every == 0 {
		f.AllowAny(a, b)
		f.every = int(f.rows[pairOf(a, b)]) + 1
	}
	f.first[a] = true
	f.rows[pairOf(a, b)], f.near[pairOf(a, b)] = uint16(f.every-1), ^uint32(0)
}

// AllowText lets through what s begins with: a text of two bytes or more.
func (f *Filter) AllowText(s string) {
	if len(s) == 2 {
		f.AllowAny(s[0], s[1])
		return
	}
	f.Allow(s[0], s[1], s[2])
}

func (f *Filter) row(a, b byte) *ByteSet {
	pair := pairOf(a, b)
	f.first[a] = true
	if !f.has(pair) {
		f.rows[pair] = uint16(len(f.third))
		f.third = append(f.third, ByteSet{})
	}
	return &f.third[f.rows[pair]]
}

// Rows is how many pairs may begin something.
func (f *Filter) Rows() int { return len(f.third) }

// Row is where among them a pair stands.
func (f *Filter) Row(a, b byte) (row int, ok bool) {
	pair := pairOf(a, b)
	return int(f.rows[pair]), f.has(pair)
}

func (p *pairs) has(pair uint16) bool { return p.near[pair] != 0 }

// isNear tells whether the three bytes of b at i may pass. Of what is near little does not pass, so that passes is hardly ever asked
// in vain.
func (p *pairs) isNear(b *[blockLen + 2]byte, i int) bool {
	return p.near[binary.BigEndian.Uint16(b[i:])]>>(b[i+2]&31)&1 != 0
}

// passes tells whether something may begin with these three bytes.
func (f *Filter) passes(a, b, c byte) bool {
	pair := pairOf(a, b)
	return f.has(pair) && f.third[f.rows[pair]].Has(c)
}

// blockLen is how many places next asks about at once: their bytes are looked up without a check of the length.
const blockLen = 8

// Next returns the first place from i on, and before the last two bytes, where something may begin; len(b)-2 or more
// where there is none.
func (f *Filter) Next(b []byte, i int) int {
	for p := f.pairs; i+blockLen+2 <= len(b); i += blockLen {
		x := (*[blockLen + 2]byte)(b[i:])
		if p.isNear(x, 0) || p.isNear(x, 1) || p.isNear(x, 2) || p.isNear(x, 3) ||
			p.isNear(x, 4) || p.isNear(x, 5) || p.isNear(x, 6) || p.isNear(x, 7) {
			for k := range blockLen {
				if f.passes(x[k], x[k+1], x[k+2]) {
					return i + k
				}
			}
		}
	}
	for i+2 < len(b) && !f.passes(b[i], b[i+1], b[i+2]) {
		i++
	}
	return i
}

// Seek returns the first place from i on where something may begin, and len(b) where there is none.
func (f *Filter) Seek(b []byte, i int) int {
	if i = f.Next(b, i); i+2 < len(b) {
		return i
	}
	return f.Tail(b, i)
}

// Tail returns the first of the last two bytes, from i on, where something may begin that has not come whole; len(b)
// where there is none.
func (f *Filter) Tail(b []byte, i int) int {
	n := len(b)
	if i = max(i, n-2); i == n-2 {
		if f.has(pairOf(b[i], b[i+1])) {
			return i
		}
		i++
	}
	if i == n-1 && f.first[b[i]] {
		return i
	}
	return n
}
