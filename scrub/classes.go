package scrub

import (
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// A class of a shape as bits, one for each kind of character that it stands for.
const (
	aToF = 1 << iota // letters
	gToZ
	capitals
	numerals
	beyondASCII // what is not ASCII
	firstOther

	small = aToF | gToZ
)

// classOf has of each byte the bit of its class; 0 for none that a shape names.
var classOf = func() (of [256]uint64) {
	for c := range of {
		switch c := byte(c); {
		case chars.IsLowerHex(c) && !chars.IsDigit(c):
			of[c] = aToF
		case c >= 'a' && c <= 'z':
			of[c] = gToZ
		case c >= 'A' && c <= 'Z':
			of[c] = capitals
		case chars.IsDigit(c):
			of[c] = numerals
		case c >= utf8.RuneSelf:
			of[c] = beyondASCII
		}
	}
	bit := uint64(firstOther)
	for i := range len(otherShapes) {
		of[otherShapes[i]] = bit
		bit <<= 1
	}
	for _, e := range extras {
		of[e.text[0]] = bit
		bit <<= 1
	}
	return of
}()

// neededOf returns for each class of a shape the bits of which a secret has one at least. It has no other bits.
func neededOf(classes string) (needed []uint64) {
	for i := range len(classes) {
		switch c := classes[i]; c {
		case 'a':
			needed = append(needed, small)
		case 'A':
			needed = append(needed, capitals)
		case '0':
			needed = append(needed, numerals)
		case 'x':
			needed = append(needed, aToF, numerals)
		case nonASCII:
			needed = append(needed, beyondASCII)
		default:
			needed = append(needed, otherClass(c))
		}
	}
	return needed
}

// otherClass is the bit of a class that is one character.
func otherClass(class byte) uint64 {
	for _, e := range extras {
		if e.class == class {
			return classOf[e.text[0]]
		}
	}
	return classOf[class]
}
