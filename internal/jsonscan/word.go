package jsonscan

import "math/bits"

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
