package jsonscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

var tooDeep = "nested more than " + strconv.Itoa(MaxDepth) + " deep"

// skip returns where the value that comes next in b from i on ends, within so many objects and lists. What is wrong with it is why, and end
// the place.
func skip(b []byte, i, depth int) (end int, why string) {
	if i = skipSpace(b, i); i >= len(b) {
		return i, "not a JSON value"
	}
	c := b[i]
	switch c {
	case '"':
		return skipText(b, i)
	case '{', '[': // '{' and '}', '[' and ']' are two apart
	default:
		return skipPlain(b, i)
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == c+2 {
		return i + 1, ""
	}
	if depth == MaxDepth {
		return i, tooDeep
	}
	for {
		if c == '{' {
			if i, why = skipKey(b, i); why != "" {
				return i, why
			}
		}
		if i, why = skip(b, i, depth+1); why != "" {
			return i, why
		}
		i = skipSpace(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i++
		case i < len(b) && b[i] == c+2:
			return i + 1, ""
		default:
			return i, "object or list does not go on"
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipKey steps over a key and its colon.
func skipKey(b []byte, i int) (int, string) {
	if i = skipSpace(b, i); i >= len(b) || b[i] != '"' {
		return i, "want a string"
	}
	i, why := skipText(b, i)
	if why != "" {
		return i, why
	}
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return i, "want ':'"
	}
	return i + 1, ""
}

// skipText steps over the string that begins at i. What is plain goes by in words; from the first escape on, in blocks, for where
// one stands others follow, as in source text, and to stop at each costs more than to look at everything.
func skipText(b []byte, i int) (int, string) {
	for i++; i+8 <= len(b); i += 8 {
		hit := special(binary.LittleEndian.Uint64(b[i:]))
		if hit == 0 {
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		switch {
		case b[i] == '"':
			return i + 1, ""
		case b[i] == '\\' && i+blockSize <= len(b):
			return skipBlocks(b, i)
		}
		break
	}
	return skipSlowly(b, i)
}

// skipSlowly steps over what is left of a string, byte by byte where it is not plain, and says what is wrong with it.
func skipSlowly(b []byte, i int) (int, string) {
	for {
		i += plainLen(b[i:])
		switch {
		case i >= len(b):
			return i, "string does not end"
		case b[i] == '"':
			return i + 1, ""
		case b[i] < 0x20:
			return i, "control character in a string"
		}
		n := escapeLen(b[i:])
		if n == 0 {
			return i, "bad escape"
		}
		i += n
	}
}

// escapeLen is how long the escape at the beginning of b is; 0 where there is none.
func escapeLen(b []byte) int {
	if short(b) != 0 {
		return 2
	}
	var room [utf8.UTFMax]byte
	n, _ := unescape(room[:], b)
	return n
}

// skipPlain steps over a number, true, false or null.
func skipPlain(b []byte, i int) (int, string) {
	switch c := b[i]; {
	case c == '-' || c-'0' <= 9:
		return skipNumber(b, i)
	case c == 't' && len(b)-i >= 4 && string(b[i:i+4]) == "true":
		return i + 4, ""
	case c == 'f' && len(b)-i >= 5 && string(b[i:i+5]) == "false":
		return i + 5, ""
	case c == 'n' && len(b)-i >= 4 && string(b[i:i+4]) == "null":
		return i + 4, ""
	}
	return i, "not a JSON value"
}

func skipNumber(b []byte, i int) (int, string) {
	var ok bool
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i, ok = digits(b, i); !ok {
		return i, "want a digit"
	}
	if i < len(b) && b[i] == '.' {
		if i, ok = digits(b, i+1); !ok {
			return i, "want a digit"
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i, ok = digits(b, i); !ok {
			return i, "want a digit"
		}
	}
	return i, ""
}

// digits steps over at least one digit.
func digits(b []byte, i int) (int, bool) {
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i, i > from
}

// blockSize is how many bytes are looked at together: one bit each in a word.
const blockSize = 64

// skipBlocks steps over what is left of a string whose next byte begins an escape, 64 bytes at a time: which of them are quotes
// and which are escaped is worked out for all of them at once, without a branch for each. Whatever is odd is left to skipSlowly,
// which also knows what to say of it.
func skipBlocks(b []byte, i int) (int, string) {
	var carry uint64 // 1 where the last byte before i was the backslash of an escape that goes on
	for i+blockSize <= len(b) {
		quotes, slashes, control := look((*[blockSize]byte)(b[i:]))
		escaped, next := escapedBy(slashes, carry)
		ends := quotes &^ escaped
		if ends != 0 {
			escaped &= ends&-ends - 1 // those before the first end
		}
		if control || !goodEscapes(b, i, escaped) {
			break
		}
		if ends != 0 {
			return i + bits.TrailingZeros64(ends) + 1, ""
		}
		i, carry = i+blockSize, next
		if slashes == 0 {
			for i+8 <= len(b) && special(binary.LittleEndian.Uint64(b[i:])) == 0 {
				i += 8
			}
		}
	}
	return skipSlowly(b, i-int(carry)) //nolint:gosec // 0 or 1
}

// look says which bytes of a block are quotes and backslashes, a bit each, the first one lowest, and whether any is a control
// character.
func look(b *[blockSize]byte) (quotes, slashes uint64, control bool) {
	const low = ^uint64(highs)
	var low32 uint64
	for k := 0; k < blockSize; k += 8 {
		x := binary.LittleEndian.Uint64(b[k:])
		q, s := x^(ones*'"'), x^(ones*'\\')
		low32 |= (x - ones*0x20) &^ x
		q, s = ^((q&low+low)|q)&highs, ^((s&low+low)|s)&highs
		// The high bits of the eight bytes, side by side.
		quotes |= q * gather >> 56 << k
		slashes |= s * gather >> 56 << k
	}
	return quotes, slashes, low32&highs != 0
}

// gather moves the high bit of byte n to bit 56+n in a multiplication.
const gather = 0x0002040810204081

// escapedBy returns which bytes of a block an odd number of backslashes stands before, and whether that holds for the byte
// behind the block. The sum runs through each row of backslashes that begins at an odd bit and changes the parity behind it.
func escapedBy(slashes, carry uint64) (escaped, next uint64) {
	const even = 0x5555555555555555
	slashes &^= carry
	follows := slashes<<1 | carry
	odd := slashes &^ even &^ follows
	sum, over := bits.Add64(odd, slashes, 0)
	return (even ^ sum<<1) & follows, over
}

// goodEscapes reports whether each of these bytes behind i is the letter of an escape.
func goodEscapes(b []byte, i int, escaped uint64) bool {
	for ; escaped != 0; escaped &= escaped - 1 {
		at := i + bits.TrailingZeros64(escaped)
		if unescaped[b[at]] != 0 {
			continue
		}
		if _, ok := hexRune(b[at-1:]); !ok {
			return false
		}
	}
	return true
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks which of the eight bytes of x may not stand in a JSON string as they are: the quote, the backslash and
// control characters. Each test sets the high bit of a byte that matches; a borrow may set those of bytes above it too,
// so only the lowest bit that is set counts.
func special(x uint64) uint64 {
	quote, slash := x^(ones*'"'), x^(ones*'\\')
	return ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
}

// escapable marks the same bytes exactly: the high bit of each, and of no other. It costs a little more than special.
func escapable(x uint64) uint64 {
	const low = ^uint64(highs)
	l := x & low
	quote, slash := l^(ones*'"'), l^(ones*'\\')
	return ^((quote+low)&(slash+low)&(l+ones*0x60) | x) & highs
}

// load8 returns the first eight bytes of s, the first one lowest.
func load8[T string | []byte](s T) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// plainLen returns how many bytes at the beginning of s may stand in a JSON string as they are.
func plainLen(s []byte) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if hit := special(load8(s[i:])); hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// ErrUTF8 is wrapped by the error of bytes that are not UTF-8.
var ErrUTF8 = errors.New("not UTF-8")

// Valid says what keeps b from being one JSON value in UTF-8, nested at most MaxDepth deep. The error is a *SyntaxError. That a
// key stands twice is not asked here; see Duplicate.
func Valid(b []byte) error {
	if err := ValidUTF8(b); err != nil {
		return err
	}
	s := Scanner{b: b}
	s.Skip()
	return s.End()
}

// ValidUTF8 says at which byte b is no UTF-8. The error is a *SyntaxError that wraps ErrUTF8.
func ValidUTF8(b []byte) error {
	if utf8.Valid(b) {
		return nil
	}
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return &SyntaxError{int64(at), ErrUTF8}
}

// Duplicate looks for a key that stands twice in one object, at any depth, after its escapes are decoded. It returns the
// first such key and the offset in bytes of its second appearance. The bytes are Valid; of others it says what it saw until
// they end.
func Duplicate(b []byte) (key string, at int, found bool) {
	d := duplicates{s: Scanner{b: b}}
	d.value(0)
	return d.key, d.at, d.found
}

type duplicates struct {
	s     Scanner
	keys  [][]byte // of all objects that are open, the innermost last
	key   string
	at    int
	found bool
}

// fewKeys is how many keys are compared one by one.
const fewKeys = 16

// value steps over a value, up to the first key that stands twice.
func (d *duplicates) value(depth int) {
	c := d.s.Peek()
	if c != '{' && c != '[' {
		d.s.Skip()
		return
	}
	if depth == MaxDepth {
		d.s.Fail("%s", tooDeep)
		return
	}
	from, many := len(d.keys), map[string]bool(nil)
	for d.s.Begin(c); d.s.More(c + 2); { // '{' and '}', '[' and ']' are two apart
		if c == '{' {
			d.s.Peek()
			at := d.s.i
			key := d.s.TextBytes()
			if d.s.i-at != len(key)+2 { // it was decoded, and does not stand in the input, which does not change
				key = bytes.Clone(key)
			}
			if many == nil && len(d.keys)-from == fewKeys {
				many = make(map[string]bool, 2*fewKeys)
				for _, k := range d.keys[from:] {
					many[string(k)] = true
				}
			}
			if many[string(key)] || many == nil && slices.ContainsFunc(d.keys[from:], func(k []byte) bool { return bytes.Equal(k, key) }) {
				d.key, d.at, d.found = string(key), at, true
				d.s.Fail("%q stands twice", key)
				return
			}
			if d.s.Colon(); many != nil {
				many[string(key)] = true
			} else {
				d.keys = append(d.keys, key)
			}
		}
		d.value(depth + 1)
	}
	d.keys = d.keys[:from]
}

// TextLen is the length, in bytes and with its quotes, of the string that b begins with; that of b where the string has no end.
func TextLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
