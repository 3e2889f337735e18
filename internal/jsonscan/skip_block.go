package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

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
