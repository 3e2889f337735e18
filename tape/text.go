package tape

import (
	"slices"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// SafeString returns b as a string that a tape can hold: as it is where it is UTF-8, with raw nil; else with U+FFFD in
// place of every byte that is not, and the true bytes as raw, for a record's Raw.
func SafeString(b string) (text string, raw []byte) {
	if utf8.ValidString(b) {
		return b, nil
	}
	return string([]rune(b)), []byte(b)
}

// hexPairs holds the two hex digits of every byte.
var hexPairs = func() (t [256][2]byte) {
	const digits = "0123456789abcdef"
	for c := range t {
		t[c] = [2]byte{digits[c>>4], digits[c&0xf]}
	}
	return t
}()

func appendDigest(dst []byte, d cas.Digest) []byte {
	dst = slices.Grow(dst, 2*len(d)+2)
	at := len(dst)
	dst = dst[:at+2*len(d)+2]
	out := (*[2*len(d) + 2]byte)(dst[at:])
	out[0], out[len(out)-1] = '"', '"'
	for i, c := range d {
		pair := &hexPairs[c]
		out[2*i+1], out[2*i+2] = pair[0], pair[1]
	}
	return dst
}
