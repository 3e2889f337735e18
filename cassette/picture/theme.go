package picture

import "github.com/tapedeck-dev/tapedeck/internal/vt"

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
	if (c.FG == nil) != (o.FG == nil) || c.FG != nil && (*c.FG != *o.FG || *c.BG != *o.BG) || len(c.Palette) != len(o.Palette) {
		return false
	}
	for i, v := range c.Palette {
		if w, ok := o.Palette[i]; !ok || v != w {
			return false
		}
	}
	return true
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
