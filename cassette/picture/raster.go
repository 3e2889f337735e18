package picture

import (
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
