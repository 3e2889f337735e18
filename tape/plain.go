package tape

import "math/bits"

// plainLen returns how many bytes at the beginning of s may stand in a JSON string as they are: up to the first quote,
// backslash or control character.
//
// It looks at eight bytes at once. In each of the three tests a byte that matches sets its high bit; a borrow may set
// the bits of bytes above it too, so only the lowest set bit counts, which is the one that is asked for.
func plainLen[T string | []byte](s T) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		hit := (x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash
		if hit &= highs; hit != 0 {
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
