package vt

// charset is a character set of 94 characters that ASCII is replaced by.
type charset uint8

const (
	setASCII charset = iota
	setDrawing
	setUK
)

// charsets is what SCS, the shifts and the single shifts designate.
type charsets struct {
	g      [4]charset
	gl     uint8
	single uint8 // of SS2 and SS3, for one character
}

func (c *charsets) translate(r rune) rune {
	set := c.g[c.gl]
	if c.single > 0 {
		set, c.single = c.g[c.single], 0
	}
	switch {
	case set == setDrawing && r >= 0x60 && r <= 0x7e:
		return drawing[r-0x60]
	case set == setUK && r == '#':
		return '£'
	}
	return r
}

// drawing is DEC special graphics, from 0x60 on; 0x5f stays an underscore, as other terminals have it.
var drawing = []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

// designate is SCS: final says which set G0…G3 gets.
func (c *charsets) designate(g int, final byte) {
	switch final {
	case '0', '2':
		c.g[g] = setDrawing
	case 'A':
		c.g[g] = setUK
	default:
		c.g[g] = setASCII
	}
}
