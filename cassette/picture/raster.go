package picture

import (
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/cellfont"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A look is all that decides how a cell is drawn. It is comparable: a cell is drawn again when its look is another.
type look struct {
	text          string
	fg, bg, under RGB
	attr          vt.Attr // that are drawn: bold, italic, strike, overline
	underline     vt.Underline
	width         uint8
	cursor        uint8
}

// The shapes of a cursor that are drawn over a cell; a block is done by its colours.
const (
	noCursor = iota
	underCursor
	barCursor
)

const drawn = vt.Bold | vt.Italic | vt.Strike | vt.Overline

// looks fills in how the cells of a picture are drawn, rows times cols of them, for a screen that may be smaller.
func looks(dst []look, p *Picture, at *paint, cols int) {
	empty := look{width: 1, fg: at.fg, bg: at.bg, under: at.fg}
	for i := range dst {
		dst[i] = empty
	}
	for y, line := range p.Lines {
		row := dst[y*cols : (y+1)*cols]
		for x := range line.Cells {
			if x < cols {
				row[x] = lookOf(&line.Cells[x], at)
			}
		}
	}
	if c := p.Cursor; c.Visible && c.Row < p.Rows && c.Col < p.Cols {
		cell := &dst[c.Row*cols+c.Col]
		switch {
		case c.Shape == 3 || c.Shape == 4:
			cell.cursor = underCursor
		case c.Shape >= 5:
			cell.cursor = barCursor
		default:
			invert(cell, at)
			if cell.width == 2 && c.Col+1 < cols {
				invert(&dst[c.Row*cols+c.Col+1], at)
			}
		}
	}
}

// invert is a block cursor. One that would not be seen takes the screen's colours.
func invert(l *look, at *paint) {
	l.fg, l.bg = l.bg, l.fg
	if l.fg == l.bg {
		l.fg, l.bg = at.bg, at.fg
	}
	l.under = l.fg
}

func lookOf(c *vt.Cell, at *paint) look {
	l := look{text: seen(c.Text), width: uint8(c.Width), attr: c.Style.Attr & drawn, underline: c.Style.Underline}
	l.fg, l.bg, l.under = at.of(c.Style)
	if c.Style.Attr&vt.Hidden != 0 {
		l.text, l.attr, l.underline = "", 0, vt.NoUnderline
	}
	if c.Link != "" && l.underline == vt.NoUnderline {
		l.underline = vt.DottedUnderline
	}
	return l
}

// A glyphs is a cache of drawn characters.
type glyphs struct {
	scale int
	masks map[glyphKey]*cellfont.Mask
}

type glyphKey struct {
	text    string
	columns uint8
	attr    vt.Attr
}

// glyphLimit bounds the cache: 4 MB at scale 1.
const glyphLimit = 16384

func (g *glyphs) mask(l *look) *cellfont.Mask {
	key := glyphKey{l.text, l.width, l.attr & (vt.Bold | vt.Italic)}
	if m, ok := g.masks[key]; ok {
		return m
	}
	if g.masks == nil || len(g.masks) >= glyphLimit {
		g.masks = map[glyphKey]*cellfont.Mask{}
	}
	face := cellfont.Face{Bold: l.attr&vt.Bold != 0, Italic: l.attr&vt.Italic != 0, Scale: g.scale}
	m := face.Draw(l.text, int(l.width))
	g.masks[key] = m
	return m
}

// A stroke is a piece of an underline, a line through letters, or a cursor: a rectangle in units of a cell.
type stroke struct{ x0, y0, x1, y1 float64 }

// strokes are the lines of a look that is w units wide, without its cursor; the underline's come first, and are counted.
func (l *look) strokes(w float64) (all []stroke, under int) {
	all = underlines(l.underline, w)
	under = len(all)
	if l.attr&vt.Strike != 0 {
		all = append(all, stroke{0, 8.5, w, 9.5})
	}
	if l.attr&vt.Overline != 0 {
		all = append(all, stroke{0, 0, w, 1})
	}
	return all, under
}

func underlines(u vt.Underline, w float64) []stroke {
	var all []stroke
	switch u {
	case vt.SingleUnderline:
		return []stroke{{0, 14, w, 15}}
	case vt.DoubleUnderline:
		return []stroke{{0, 13, w, 14}, {0, 15, w, 16}}
	case vt.CurlyUnderline:
		for x := 0.0; x < w; x += 4 { // two steps down, two up
			all = append(all, stroke{x, 14, x + 1, 15}, stroke{x + 1, 13, x + 2, 14}, stroke{x + 2, 14, x + 3, 15}, stroke{x + 3, 15, x + 4, 16})
		}
	case vt.DottedUnderline:
		for x := 0.0; x < w; x += 2 {
			all = append(all, stroke{x, 14, x + 1, 15})
		}
	case vt.DashedUnderline:
		for x := 0.0; x < w; x += 8 {
			all = append(all, stroke{x + 1, 14, x + 6, 15})
		}
	}
	return all
}

// cursorStroke is a cursor that is no block.
func (l *look) cursorStroke(w float64) (stroke, bool) {
	switch l.cursor {
	case underCursor:
		return stroke{0, 14, w, 16}, true
	case barCursor:
		return stroke{0, 0, 1, 16}, true
	}
	return stroke{}, false
}

// A pair is what a letter is drawn with. Between the two lie the shades of its edges.
type pair struct{ fg, bg RGB }

// A ramp is the index of a picture's palette for each level of a mask.
type ramp [cellfont.Levels]uint8

// A palette is the colours of one picture of a GIF: at most 255, and index 0, which is transparent.
type palette struct {
	colors []RGB // from index 1
	index  map[RGB]uint8
	ramps  map[pair]*ramp
	steps  int // shades of an edge, the two colours among them
}

const maxColors = 255

// newPalette makes a palette of what cells want: colours, and pairs of them. All colours are exact where they fit; the shades between
// them become fewer first, then the colours themselves lose their lower bits.
func newPalette(pairs map[pair]bool, solid map[RGB]bool) *palette {
	for _, steps := range []int{8, 4, 2} {
		set := map[RGB]bool{}
		for c := range solid {
			set[c] = true
		}
		for p := range pairs {
			for i := range steps {
				set[mix(p.bg, p.fg, i, steps-1)] = true
			}
			if len(set) > maxColors {
				break
			}
		}
		if len(set) <= maxColors {
			return paletteOf(slices.Sorted(maps.Keys(set)), steps)
		}
	}
	for lost := 1; ; lost++ { // bits of each channel
		set := map[RGB]bool{}
		near := func(c RGB) { set[c&^(0x010101<<lost-0x010101)|0x010101<<(lost-1)] = true }
		for c := range solid {
			near(c)
		}
		for p := range pairs {
			near(p.fg)
			near(p.bg)
		}
		if len(set) <= maxColors {
			return paletteOf(slices.Sorted(maps.Keys(set)), 2)
		}
	}
}

func paletteOf(colors []RGB, steps int) *palette {
	p := &palette{colors: colors, steps: steps, index: make(map[RGB]uint8, len(colors)), ramps: map[pair]*ramp{}}
	for i, c := range colors {
		p.index[c] = uint8(i + 1)
	}
	return p
}

// of returns a colour's index; where colours were reduced, the nearest one's.
func (p *palette) of(c RGB) uint8 {
	if i, ok := p.index[c]; ok {
		return i
	}
	best, least := 0, 1<<30
	for i, o := range p.colors {
		if d := distance(c, o); d < least {
			best, least = i, d
		}
	}
	p.index[c] = uint8(best + 1)
	return uint8(best + 1)
}

func distance(a, b RGB) int {
	r, g, bl := int(a>>16&255)-int(b>>16&255), int(a>>8&255)-int(b>>8&255), int(a&255)-int(b&255)
	return 2*r*r + 4*g*g + 3*bl*bl
}

func (p *palette) ramp(of pair) *ramp {
	if r, ok := p.ramps[of]; ok {
		return r
	}
	r := new(ramp)
	for level := range r {
		step := (level*(p.steps-1) + (cellfont.Levels-1)/2) / (cellfont.Levels - 1)
		r[level] = p.of(mix(of.bg, of.fg, step, p.steps-1))
	}
	p.ramps[of] = r
	return r
}

// An RGB is a colour: red, green and blue from the upper byte of the lower three.
type RGB uint32

// A Theme is the colours that a program does not name itself.
type Theme struct {
	Name         string
	FG, BG       RGB
	Bar, BarText RGB // of the window's title
	Palette      [16]RGB
}

// Dark and Light are the themes that come along.
var (
	Dark = &Theme{
		Name: "dark", FG: 0xD8DEE9, BG: 0x16181D, Bar: 0x262A33, BarText: 0x9AA4B5,
		Palette: [16]RGB{
			0x2A2E37, 0xE5656F, 0x8CC265, 0xD9A84E, 0x3A72BE, 0xC678DD, 0x42B3C2, 0xC8CEDA,
			0x5F6878, 0xFF7B86, 0xA5E075, 0xF0C35F, 0x6CBBFF, 0xDE92F5, 0x56D1E0, 0xF5F7FA,
		},
	}
	Light = &Theme{
		Name: "light", FG: 0x2B303B, BG: 0xFCFCFA, Bar: 0xE6E7EA, BarText: 0x5C6370,
		Palette: [16]RGB{
			0x1B1E25, 0xCF3B47, 0x4C9636, 0xA87A10, 0x2A7CC7, 0xA94BC2, 0x148E9D, 0xC3C7D0,
			0x6F7786, 0xE04F5B, 0x5CA845, 0xBD8C1E, 0x3D92DC, 0xBE5FD6, 0x22A3B3, 0xE9EBEF,
		},
	}
)

// Themes by their names.
var Themes = map[string]*Theme{"dark": Dark, "light": Light}

// Colors are those that a program gave its terminal (OSC 4, 10, 11) in place of the theme's.
type Colors struct {
	FG, BG  *RGB
	Palette map[uint8]RGB
}

// plain is a screen whose colours nobody changed.
var plain = struct {
	palette [256]RGB
	fg, bg  RGB
}{}

func init() {
	s := vt.New(&vt.Options{Rows: 1, Cols: 1, Scrollback: -1})
	for i := range plain.palette {
		plain.palette[i] = pack(s.Palette(i))
	}
	plain.fg, plain.bg = defaults(s)
}

func pack(r, g, b uint8) RGB { return RGB(r)<<16 | RGB(g)<<8 | RGB(b) }

func defaults(s *vt.Screen) (fg, bg RGB) {
	f, b := s.DefaultColors()
	return pack(f[0], f[1], f[2]), pack(b[0], b[1], b[2])
}

// colorsOf returns what a program changed; nil is nothing. The one before is returned again where it is the same.
func colorsOf(s *vt.Screen, before *Colors) *Colors {
	var c Colors
	if fg, bg := defaults(s); fg != plain.fg || bg != plain.bg {
		c.FG, c.BG = &fg, &bg
	}
	for i := range plain.palette {
		if v := pack(s.Palette(i)); v != plain.palette[i] {
			if c.Palette == nil {
				c.Palette = map[uint8]RGB{}
			}
			c.Palette[uint8(i)] = v
		}
	}
	switch {
	case c.FG == nil && c.Palette == nil:
		return nil
	case c.equal(before):
		return before
	}
	return &c
}

func (c *Colors) equal(o *Colors) bool {
	if c == nil || o == nil {
		return c == o
	}
	sameFG := (c.FG == nil) == (o.FG == nil) && (c.FG == nil || *c.FG == *o.FG && *c.BG == *o.BG)
	return sameFG && maps.Equal(c.Palette, o.Palette)
}

// A paint is every colour as it is drawn: the theme's, and what the program changed.
type paint struct {
	fg, bg  RGB
	palette [256]RGB
}

func (t *Theme) paint(c *Colors) *paint {
	p := &paint{fg: t.FG, bg: t.BG, palette: plain.palette}
	copy(p.palette[:], t.Palette[:])
	if c == nil {
		return p
	}
	if c.FG != nil {
		p.fg, p.bg = *c.FG, *c.BG
	}
	for i, v := range c.Palette {
		p.palette[i] = v
	}
	return p
}

func (p *paint) color(c vt.Color, otherwise RGB) RGB {
	switch c &^ 0xFFFFFF {
	case vt.ColorIndexed:
		return p.palette[uint8(c)]
	case vt.ColorRGB:
		return RGB(c & 0xFFFFFF)
	}
	return otherwise
}

// of returns the colours of a style: of the letter, of what is behind it, of its underline.
func (p *paint) of(s vt.Style) (fg, bg, under RGB) {
	fg, bg = p.color(s.FG, p.fg), p.color(s.BG, p.bg)
	if s.Attr&vt.Reverse != 0 {
		fg, bg = bg, fg
	}
	if s.Attr&vt.Faint != 0 {
		fg = mix(bg, fg, 9, 15)
	}
	if s.Attr&vt.Hidden != 0 {
		fg = bg
	}
	under = fg
	if s.Attr&vt.Hidden == 0 {
		under = p.color(s.UnderlineColor, fg)
	}
	return fg, bg, under
}

// mix is n parts of b in place of as many of a.
func mix(a, b RGB, n, of int) RGB {
	part := func(shift int) RGB {
		x, y := int(a>>shift&255), int(b>>shift&255)
		return RGB(x+((y-x)*n+of/2*sign(y-x))/of) << shift
	}
	return part(16) | part(8) | part(0)
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}
