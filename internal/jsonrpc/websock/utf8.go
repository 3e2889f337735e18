package websock

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// scratch is how many bytes are unmasked at a time.
const scratch = 512

// utf8 follows bytes of a text, which are masked and begin at the byte at of their frame, and reports whether they can be the
// beginning of one in UTF-8. What is ASCII is not even written down.
func (g *guard) utf8(b []byte, at int64) bool {
	mask := bits.RotateLeft32(binary.LittleEndian.Uint32(g.mask[:]), -8*int(at&3))
	wide := uint64(mask)<<32 | uint64(mask)
	var room [utf8.UTFMax + scratch]byte
	for len(b) > 0 {
		if g.ncarry == 0 {
			n := ascii(b, wide)
			b = b[n:]
			if len(b) == 0 {
				return true
			}
		}
		n := min(len(b), scratch) // a multiple of 8, or all that is left: the mask stays as it stands
		k := copy(room[:], g.carry[:g.ncarry])
		for i, c := range b[:n] {
			room[k+i] = c ^ byte(mask>>(8*(i&3)))
		}
		if !g.characters(room[:k+n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// ascii returns how many bytes at the beginning of b, in steps of eight, are ASCII once unmasked.
func ascii(b []byte, mask uint64) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if (binary.LittleEndian.Uint64(b[i:])^mask)&0x8080808080808080 != 0 {
			break
		}
	}
	return i
}

// characters reports whether p is UTF-8 but for a character that has only begun at its end, which is carried over.
func (g *guard) characters(p []byte) bool {
	g.ncarry = 0
	if utf8.Valid(p) {
		return true
	}
	from := max(0, len(p)-utf8.UTFMax+1)
	for i := len(p) - 1; i >= from; i-- {
		if !utf8.RuneStart(p[i]) {
			continue
		}
		if utf8.FullRune(p[i:]) || !utf8.Valid(p[:i]) {
			return false
		}
		g.ncarry = copy(g.carry[:], p[i:])
		return true
	}
	return false
}
