package cellfont

import (
	"bytes"
	"compress/flate"
	_ "embed" // the fonts
	"encoding/binary"
	"io"
	"math"
	"slices"
	"sync"
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

// fill draws shapes; stretch is how many cells wide they become.
func fill(shapes []Shape, w, h, scale int, stretch float64) *Mask {
	m := newMask(w, h)
	for _, s := range shapes {
		if s.Rect {
			m.rect(s, float64(scale), stretch)
		} else {
			m.polygon(s, float64(scale), stretch)
		}
	}
	return m
}

// rect draws on whole pixels, one at least each way.
func (m *Mask) rect(s Shape, scale, stretch float64) {
	x0, x1 := span(s.Points[0].X*scale*stretch, s.Points[2].X*scale*stretch, m.W)
	y0, y1 := span(s.Points[0].Y*scale, s.Points[2].Y*scale, m.H)
	level := uint8(math.Round(s.Cover * (Levels - 1)))
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			m.Pix[y*m.W+x] = max(m.Pix[y*m.W+x], level)
		}
	}
}

func span(from, to float64, limit int) (int, int) {
	a, b := int(math.Floor(from+0.5)), int(math.Floor(to+0.5))
	if b <= a {
		b = a + 1
	}
	return max(a, 0), min(b, limit)
}

// polygon counts which of sixteen places in each pixel are inside. At an odd scale lines of one unit stand on whole pixels
// half a unit off the middle (see span), so polygons move with them.
func (m *Mask) polygon(s Shape, scale, stretch float64) {
	shift := 0.0
	if int(scale)%2 == 1 {
		shift = 0.5
	}
	const grid = 4
	for y := range m.H {
		for x := range m.W {
			n := 0
			for i := range grid * grid {
				px := (float64(x) + (float64(i%grid)+0.5)/grid - shift) / scale / stretch
				py := (float64(y) + (float64(i/grid)+0.5)/grid - shift) / scale
				if inside(s.Points, px, py) {
					n++
				}
			}
			level := uint8(math.Round(float64(n) * (Levels - 1) / (grid * grid)))
			m.Pix[y*m.W+x] = max(m.Pix[y*m.W+x], level)
		}
	}
}

func inside(points []Point, x, y float64) bool {
	in := false
	last := points[len(points)-1]
	for _, p := range points {
		if (p.Y > y) != (last.Y > y) && x < (last.X-p.X)*(y-p.Y)/(last.Y-p.Y)+p.X {
			in = !in
		}
		last = p
	}
	return in
}

// smoothLetter draws from the smooth font; nil where it lacks the character.
func (f Face) smoothLetter(c rune) *Mask {
	var kind uint32
	if f.Bold {
		kind = 1
	}
	data := smooth().find(c, kind)
	if data == nil {
		return nil
	}
	const w, h = 2 * Width, 2 * Height
	full := newMask(w, h)
	for i, b := range data[:smoothSize] {
		full.Pix[2*i], full.Pix[2*i+1] = b>>4, b&15
	}
	return full.resized(Width*f.Scale, Height*f.Scale)
}

// resized has each pixel be the mean of those that it covers.
func (m *Mask) resized(w, h int) *Mask {
	if w == m.W && h == m.H {
		return m
	}
	out := newMask(w, h)
	for y := range h {
		for x := range w {
			x0, x1 := x*m.W/w, max((x+1)*m.W/w, x*m.W/w+1)
			y0, y1 := y*m.H/h, max((y+1)*m.H/h, y*m.H/h+1)
			sum := 0
			for sy := y0; sy < y1; sy++ {
				for sx := x0; sx < x1; sx++ {
					sum += int(m.Pix[sy*m.W+sx])
				}
			}
			n := (x1 - x0) * (y1 - y0)
			out.Pix[y*w+x] = uint8((sum + n/2) / n)
		}
	}
	return out
}

// bitmap draws from Unifont into columns cells: a narrow glyph stands in the middle of a wide place, a wide one is made
// narrow.
func bitmap(c rune, columns, scale int) *Mask {
	glyph := rows(c)
	if glyph == nil {
		glyph = box(columns)
	}
	if scale > 1 {
		glyph = glyph.doubled()
	}
	unit := 1
	if scale > 1 {
		unit = 2
	}
	place := newMask(columns*Width*unit, Height*unit)
	if glyph.W > place.W {
		glyph = glyph.resized(place.W, place.H)
	}
	place.over(glyph, (place.W-glyph.W)/2)
	return place.resized(columns*Width*scale, Height*scale)
}

func rows(c rune) *Mask {
	kind := 0
	data := unifont().find(c, 0)
	if data == nil {
		kind, data = 1, unifont().find(c, 1)
	}
	if data == nil {
		return nil
	}
	m := newMask(Width*(kind+1), Height)
	for side := range kind + 1 {
		for y, bits := range data[16*side : 16*side+16] {
			for x := range 8 {
				if bits&(0x80>>x) != 0 {
					m.Pix[y*m.W+8*side+x] = Levels - 1
				}
			}
		}
	}
	return m
}

// box stands for a character that no font has.
func box(columns int) *Mask {
	m := newMask(Width*columns, Height)
	for y := 3; y < 14; y++ {
		for x := 1; x < m.W-1; x++ {
			if y == 3 || y == 13 || x == 1 || x == m.W-2 {
				m.Pix[y*m.W+x] = Levels - 1
			}
		}
	}
	return m
}

// doubled makes a bitmap twice as large and rounds its stairs: a corner of a pixel takes after its two neighbours where these
// are alike and the opposite ones are not.
func (m *Mask) doubled() *Mask {
	out := newMask(2*m.W, 2*m.H)
	at := func(x, y int) uint8 {
		if x < 0 || y < 0 || x >= m.W || y >= m.H {
			return 0
		}
		return m.Pix[y*m.W+x]
	}
	for y := range m.H {
		for x := range m.W {
			up, left, right, down := at(x, y-1), at(x-1, y), at(x+1, y), at(x, y+1)
			corner := func(dx, dy int, a, b, otherA, otherB uint8) {
				v := at(x, y)
				if a == b && a != otherB && b != otherA {
					v = a
				}
				out.Pix[(2*y+dy)*out.W+2*x+dx] = v
			}
			corner(0, 0, up, left, right, down)
			corner(1, 0, up, right, left, down)
			corner(0, 1, down, left, right, up)
			corner(1, 1, down, right, left, up)
		}
	}
	return out
}

//go:generate go -C ../../tools/cellfont run . -o ../../internal/cellfont

var (
	//go:embed unifont.bin
	unifontPacked []byte
	//go:embed smooth.bin
	smoothPacked []byte
)

// A font is glyphs of one of the packed files, sorted by character.
type font struct {
	keys  []uint32 // the character, times two, and its kind
	place []uint32 // where its data begins
	data  []byte
}

// The kinds of glyph: in Unifont narrow and wide ones, in the smooth font regular and bold ones.
var (
	unifont = sync.OnceValue(func() *font { return unpack(unifontPacked, 16, 32) })
	smooth  = sync.OnceValue(func() *font { return unpack(smoothPacked, smoothSize, smoothSize) })
)

const smoothSize = 2 * Width * 2 * Height / 2 // two pixels a byte

// unpack reads what tools/cellfont wrote; size0 and size1 are the bytes of a glyph of each kind. The files are part of the
// program, so what is wrong with them is a panic.
func unpack(packed []byte, size0, size1 int) *font {
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		panic("cellfont: an embedded font is broken: " + err.Error())
	}
	count, n := binary.Uvarint(raw)
	raw = raw[n:]
	f := &font{keys: make([]uint32, count), place: make([]uint32, count)}
	var char, at uint32
	for i := range f.keys {
		v, n := binary.Uvarint(raw)
		raw = raw[n:]
		char += uint32(v >> 1)
		f.keys[i], f.place[i] = char<<1|uint32(v&1), at
		at += uint32([2]int{size0, size1}[v&1])
	}
	if int(at) != len(raw) {
		panic("cellfont: an embedded font is broken")
	}
	f.data = raw
	return f
}

// find returns a glyph's data from its first byte on, or nil.
func (f *font) find(char rune, kind uint32) []byte {
	i, ok := slices.BinarySearch(f.keys, uint32(char)<<1|kind)
	if !ok {
		return nil
	}
	return f.data[f.place[i]:]
}
