package tape

import (
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
	for {
		n := plainLen(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, s[n])
		s = s[n+1:]
	}
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
}

func appendNumber[T int | int64 | uint64](dst []byte, n T) []byte {
	if n < 0 {
		return strconv.AppendInt(dst, int64(n), 10)
	}
	return strconv.AppendUint(dst, uint64(n), 10)
}
