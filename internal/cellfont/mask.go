package cellfont

import (
	"math"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Levels is how many steps of coverage a Mask has: from 0 to Levels-1.
const Levels = 16

// A Mask is how much of each pixel a character covers, row by row: W times H values below Levels.
type Mask struct {
	W, H int
	Pix  []uint8
}

// A Face says how characters are drawn. It is comparable.
type Face struct {
	Bold, Italic bool
	Scale        int // pixels a unit, from 1
}

// Draw returns a cluster in a cell that is columns wide, 1 or 2. The mask has Width times columns times Scale by Height times
// Scale pixels.
func (f Face) Draw(cluster string, columns int) *Mask {
	m := newMask(columns*Width*f.Scale, Height*f.Scale)
	chars := parts(cluster)
	if len(chars) == 0 {
		return m
	}
	if len(chars) == 2 && regional(chars[0]) && regional(chars[1]) && columns == 2 { // a flag is its country's letters
		m.over(f.char(chars[0], 1), 0)
		m.over(f.char(chars[1], 1), Width*f.Scale)
		return m
	}
	for _, c := range chars {
		m.over(f.char(c, columns), 0)
	}
	return m
}

func regional(c rune) bool { return c >= 0x1F1E6 && c <= 0x1F1FF }

// parts are the characters of a cluster that are drawn over each other: the composed letter and the marks that are left. Of
// what is joined by U+200D the first stands for all.
func parts(cluster string) []rune {
	if len(cluster) == 1 {
		return []rune{rune(cluster[0])}
	}
	var chars []rune
	for _, c := range norm.NFC.String(cluster) {
		switch {
		case c == 0x200D:
			return chars
		case c >= 0xFE00 && c <= 0xFE0F, c >= 0xE0000, c >= 0x1F3FB && c <= 0x1F3FF && len(chars) > 0, unicode.Is(unicode.Cf, c):
			continue // variants, tags, tones of skin, formats
		case len(chars) == 8:
			return chars
		}
		chars = append(chars, c)
	}
	return chars
}

// char draws one character.
func (f Face) char(c rune, columns int) *Mask {
	w, h := columns*Width*f.Scale, Height*f.Scale
	if c == ' ' || c == 0xA0 || c == 0x2800 || c == 0x3000 {
		return newMask(w, h)
	}
	if shapes := Shapes(c); shapes != nil {
		return fill(shapes, w, h, f.Scale, float64(columns))
	}
	m := f.letter(c, columns)
	if f.Italic {
		m.shear(f.Scale)
	}
	return m
}

func (f Face) letter(c rune, columns int) *Mask {
	if columns == 1 {
		if m := f.smoothLetter(c); m != nil {
			return m
		}
	}
	m := bitmap(c, columns, f.Scale)
	if f.Bold {
		m.smear(f.Scale)
	}
	return m
}

func newMask(w, h int) *Mask { return &Mask{W: w, H: h, Pix: make([]uint8, w*h)} }

// over draws another mask of the same height, x pixels to the right.
func (m *Mask) over(o *Mask, x int) {
	for y := range min(m.H, o.H) {
		for i, v := range o.Pix[y*o.W : (y+1)*o.W] {
			if i+x < m.W {
				p := &m.Pix[y*m.W+i+x]
				*p = max(*p, v)
			}
		}
	}
}

// smear makes it bold: each pixel covers the next one too.
func (m *Mask) smear(by int) {
	for y := range m.H {
		row := m.Pix[y*m.W : (y+1)*m.W]
		for x := m.W - 1; x >= by; x-- {
			row[x] = max(row[x], row[x-by])
		}
	}
}

// shear leans it to the right, about the line that letters stand on.
func (m *Mask) shear(scale int) {
	row := make([]uint8, m.W)
	for y := range m.H {
		by := int(math.Round((float64(8*scale) - float64(y) - 0.5) / 5))
		old := m.Pix[y*m.W : (y+1)*m.W]
		clear(row)
		for x, v := range old {
			if v > 0 && x+by >= 0 && x+by < m.W {
				row[x+by] = v
			}
		}
		copy(old, row)
	}
}
