package tape

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

// SafeString returns b as a string that a tape can hold: as it is where it is UTF-8, with raw nil; else with U+FFFD in
// place of every byte that is not, and the true bytes as raw, for a record's Raw.
func SafeString(b string) (text string, raw []byte) {
	if utf8.ValidString(b) {
		return b, nil
	}
	return string([]rune(b)), []byte(b)
}

// appendString appends s in quotes. It escapes the quote, the backslash and control characters, and nothing else: what
// other producers of the format do, so that equal records are equal bytes.
func appendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s, _ = SafeString(s)
	}
	dst = append(dst, '"')
	for len(s) > 0 {
		dst = slices.Grow(dst, len(s)+len(s)/8+step)
		var n int
		dst, n = appendEscaped(dst, s)
		s = s[n:]
	}
	return append(dst, '"')
}

// step is the most that one step of appendEscaped writes: eight bytes, of which an escape may overwrite the last.
const step = 8 + len(`\u0000`)

// appendEscaped appends as much of s as there is room for in dst and returns how much that is.
//
// Text that is JSON itself has an escape every few bytes. So eight bytes are copied before it is known how many of them
// count, which is cheaper than to look first and to copy then.
func appendEscaped(dst []byte, s string) ([]byte, int) {
	room := dst[len(dst):cap(dst)]
	r, w := 0, 0
	for r < len(s) && len(room)-w >= step {
		if r+8 <= len(s) {
			x := load8(s[r:])
			binary.LittleEndian.PutUint64(room[w:], x)
			plain := bits.TrailingZeros64(special(x)) / 8
			r, w = r+plain, w+plain
			if plain == 8 {
				continue
			}
		} else if c := s[r]; c >= 0x20 && c != '"' && c != '\\' {
			room[w] = c
			r, w = r+1, w+1
			continue
		}
		w += putEscape(room[w:], s[r])
		r++
	}
	return dst[:len(dst)+w], r
}

// escapes maps a byte to the letter of its short escape.
var escapes = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// putEscape writes the escape of c and returns its length.
func putEscape(dst []byte, c byte) int {
	if letter := escapes[c]; letter != 0 {
		dst[0], dst[1] = '\\', letter
		return 2
	}
	const digits = "0123456789abcdef"
	return copy(dst, []byte{'\\', 'u', '0', '0', digits[c>>4], digits[c&0xf]})
}

func appendNumber[T int | int64 | uint64](dst []byte, n T) []byte {
	if n < 0 {
		return strconv.AppendInt(dst, int64(n), 10)
	}
	return strconv.AppendUint(dst, uint64(n), 10)
}
