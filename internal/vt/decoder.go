package vt

import "unicode/utf8"

// A decoder puts code points of UTF-8 together. What is not UTF-8 becomes U+FFFD, one for each longest beginning of a code
// point, as the Encoding standard has it, however the bytes are cut.
type decoder struct {
	buf    [utf8.UTFMax]byte
	n      int  // bytes of the open code point in buf
	need   int  // bytes that it has
	lo, hi byte // bounds of the next byte
	at     int64
	raw    int // bytes of the last code point in buf
}

// decode reads p until a code point ends: the code point, how many bytes of p were read (0 where the open code point ended
// before p[0]), and whether one ended.
func (d *decoder) decode(p []byte) (rune, int, bool) {
	i := 0
	if d.n == 0 {
		if !d.begin(p[0]) {
			return utf8.RuneError, 1, true
		}
		i = 1
	}
	for ; i < len(p); i++ {
		c := p[i]
		if c < d.lo || c > d.hi {
			d.raw, d.n = d.n, 0
			return utf8.RuneError, i, true
		}
		d.lo, d.hi = 0x80, 0xbf
		d.buf[d.n] = c
		d.n++
		if d.n == d.need {
			r, _ := utf8.DecodeRune(d.buf[:d.n])
			d.raw, d.n = d.n, 0
			return r, i + 1, true
		}
	}
	return 0, i, false
}

// begin takes a first byte; it is false for a byte that begins nothing.
func (d *decoder) begin(c byte) bool {
	d.buf[0], d.lo, d.hi = c, 0x80, 0xbf
	switch {
	case c >= 0xc2 && c <= 0xdf:
		d.need = 2
	case c >= 0xe0 && c <= 0xef:
		d.need = 3
		switch c {
		case 0xe0:
			d.lo = 0xa0
		case 0xed:
			d.hi = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		d.need = 4
		switch c {
		case 0xf0:
			d.lo = 0x90
		case 0xf4:
			d.hi = 0x8f
		}
	default:
		d.raw = 1
		return false
	}
	d.n = 1
	return true
}

// take is the bytes of the last code point.
func (d *decoder) take() []byte { return d.buf[:d.raw] }
