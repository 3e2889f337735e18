package ttyscrub

import (
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// The masks of a character of so many bytes and columns. None is a letter, a mark or a pictograph, so none joins with what stands
// beside it.
const (
	maskASCII = '*'
	mask2     = '·' // 2 bytes, 1 column
	mask3     = '•' // 3, 1
	maskWide  = '＊' // 3, 2
	mask4     = '🞶' // 4, 1
	mask4Wide = '🈀' // 4, 2
	// Of a character of several code points the rest becomes marks that are not seen.
	fill2 = '\u034f'
	fill3 = '\ufe00'
)

// isMask tells whether masking leaves r as it is.
func isMask(r rune) bool {
	switch r {
	case maskASCII, mask2, mask3, maskWide, mask4, mask4Wide, fill2, fill3:
		return true
	}
	return false
}

// masked reports whether b is nothing but masks.
func masked(b []byte) bool {
	for i, c := range b {
		if c == maskASCII {
			continue
		}
		for _, r := range string(b[i:]) {
			if !isMask(r) {
				return false
			}
		}
		return true
	}
	return true
}

// Mask masks the text of hits in b, which stands at an offset of the stream, in place. Hits may reach over the ends of b; one that
// begins before it must be cut between characters. Control sequences within a hit stay.
func Mask(b []byte, at int64, hits []Hit) {
	for _, h := range hits {
		start, end := max(h.Start-at, 0), min(h.End-at, int64(len(b)))
		if start < end {
			maskText(b[start:end])
		}
	}
}

// MaskAt is Mask for a file.
func MaskAt(f File, hits []Hit) error {
	for _, h := range hits {
		b := make([]byte, h.End-h.Start)
		if _, err := f.ReadAt(b, h.Start); err != nil {
			return err
		}
		maskText(b)
		if _, err := f.WriteAt(b, h.Start); err != nil {
			return err
		}
	}
	return nil
}

// maskText masks the characters of b, which begins between sequences.
func maskText(b []byte) {
	var x lexer
	for len(b) > 0 {
		k, n := x.next(b)
		for k == text && n < len(b) && x.state == afterC2 { // the rest of a character whose first byte may be one of C1
			next, m := x.next(b[n:])
			k, n = next, n+m
		}
		if k == text {
			maskRun(b[:n])
		}
		b = b[n:]
	}
}

func maskRun(b []byte) {
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf && (len(b) == 1 || b[1] < utf8.RuneSelf) {
			b[0] = maskASCII
			b = b[1:]
			continue
		}
		n, runes, width := cellOf(b)
		maskCell(b[:n], runes, width)
		b = b[n:]
	}
}

// cellOf returns how many bytes at the beginning of b share a cell of the terminal, and how many code points and columns they are.
func cellOf(b []byte) (n, runes, width int) {
	var s grapheme.State
	var base rune
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		next, begins := grapheme.Next(s, r)
		if runes > 0 && (begins || r == utf8.RuneError || !grapheme.JoinsCell(s, r)) {
			break
		}
		if runes == 0 {
			base, width = r, grapheme.Width(r)
		} else if r == 0xfe0f && width == 1 && grapheme.VariationWide(base) {
			width = 2
		}
		s = next
		n, runes = n+size, runes+1
		if base == utf8.RuneError {
			break
		}
	}
	return n, runes, width
}

// maskCell writes a mask of so many columns over a cell. What takes no column and what is no UTF-8 stays.
func maskCell(b []byte, runes, width int) {
	if r, size := utf8.DecodeRune(b); width == 0 || r == utf8.RuneError && size < 2 {
		return
	}
	base := []byte(string(baseFor(len(b), runes, width)))
	n := copy(b, base)
	for n < len(b) {
		fill := fill3
		if left := len(b) - n; left == 2 || left == 4 {
			fill = fill2
		}
		n += utf8.EncodeRune(b[n:], fill)
	}
}

// baseFor returns the code point that stands for a cell of n bytes; what it leaves of them is 0, or 2 or more.
func baseFor(n, runes, width int) rune {
	switch {
	case width == 2 && n == 4:
		return mask4Wide
	case width == 2:
		return maskWide
	case runes == 1 && n == 2:
		return mask2
	case runes == 1 && n == 3:
		return mask3
	case runes == 1 && n == 4:
		return mask4
	}
	return maskASCII
}
