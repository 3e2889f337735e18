package picture

import (
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/cellfont"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// appendLine writes a line as it stands in the first row: what is behind, lines and blocks, letters, underlines.
func (m *svgMaker) appendLine(b []byte, l *Line, at *paint, cols int) []byte {
	looks := make([]look, min(len(l.Cells), cols))
	for i := range looks {
		looks[i] = lookOf(&l.Cells[i], at)
	}
	b = m.appendGrounds(b, looks, at, cols)
	for from := 0; from < len(looks); {
		to := from + 1
		switch one := &looks[from]; {
		case one.text == "" || one.width == 0:
		case drawnByProgram(one.text):
			for to < len(looks) && looks[to] == *one {
				to++
			}
			b = appendShapes(b, one, from, to)
		default:
			for joins(one) && to < len(looks) && follows(looks, from, to) {
				to++
			}
			for looks[to-1].text == "" && to-1 > from {
				to--
			}
			b = appendText(b, looks[from:to], from)
		}
		from = to
	}
	return appendStrokes(b, looks)
}

// appendGrounds writes what is behind the letters, where it is not what is behind everything.
func (m *svgMaker) appendGrounds(b []byte, looks []look, at *paint, cols int) []byte {
	if at.bg != m.base {
		b = appendRect(b, 0, cols, at.bg)
	}
	for from := 0; from < len(looks); {
		to := from + 1
		for to < len(looks) && looks[to].bg == looks[from].bg {
			to++
		}
		if looks[from].bg != at.bg {
			b = appendRect(b, from, to, looks[from].bg)
		}
		from = to
	}
	return b
}

func appendRect(b []byte, from, to int, c RGB) []byte {
	b = append(b, `<rect class="c" x="`...)
	b = strconv.AppendInt(b, int64(from*cellfont.Width), 10)
	b = append(b, `" width="`...)
	b = strconv.AppendInt(b, int64((to-from)*cellfont.Width), 10)
	b = append(b, `" height="16" fill="`...)
	b = append(b, c.String()...)
	return append(b, `"/>`...)
}

func first(s string) rune {
	for _, c := range s {
		return c
	}
	return 0
}

func drawnByProgram(text string) bool {
	c := first(text)
	return c >= 0x2300 && len(string(c)) == len(text) && cellfont.Shapes(c) != nil
}

// joins says whether a cell's letter is one of those that every font for terminals has as wide as the others.
func joins(l *look) bool {
	c := first(l.text)
	return l.width == 1 && len(string(c)) == len(l.text) && c < 0x530 && (c < 0x300 || c >= 0x370)
}

// follows says whether the cell at to goes on with the run from from: as it, or blank with another letter soon.
func follows(looks []look, from, to int) bool {
	a, l := &looks[from], &looks[to]
	if l.text == "" {
		return l.width == 1 && to-from < 200 && (looks[to-1].text != "" || looks[to-2].text != "")
	}
	return joins(l) && l.fg == a.fg && l.attr&(vt.Bold|vt.Italic) == a.attr&(vt.Bold|vt.Italic)
}

func appendText(b []byte, run []look, col int) []byte {
	width := 0
	for i := range run {
		width += int(run[i].width)
	}
	b = append(b, `<text x="`...)
	b = strconv.AppendInt(b, int64(col*cellfont.Width), 10)
	b = append(b, `" y="12.5" textLength="`...)
	b = strconv.AppendInt(b, int64(width*cellfont.Width), 10)
	b = append(b, `" lengthAdjust="spacingAndGlyphs"`...)
	switch run[0].attr & (vt.Bold | vt.Italic) {
	case vt.Bold:
		b = append(b, ` class="b"`...)
	case vt.Italic:
		b = append(b, ` class="i"`...)
	case vt.Bold | vt.Italic:
		b = append(b, ` class="b i"`...)
	}
	b = append(b, ` fill="`...)
	b = append(b, run[0].fg.String()...)
	b = append(b, `">`...)
	for i := range run {
		if run[i].text == "" {
			b = append(b, ' ')
		} else {
			b = append(b, escape(run[i].text)...)
		}
	}
	return append(b, `</text>`...)
}

// appendShapes writes equal cells that are drawn by program. Shapes that go from edge to edge become one.
func appendShapes(b []byte, l *look, from, to int) []byte {
	shapes := cellfont.Shapes(first(l.text))
	for _, s := range shapes {
		wide := s.Rect && s.Points[0].X == 0 && s.Points[1].X == cellfont.Width*1.0
		var d []byte
		for col := from; col < to; col++ {
			x := float64(col * cellfont.Width)
			if wide {
				s.Points[1].X = float64((to - from) * cellfont.Width)
				s.Points[2].X = s.Points[1].X
			}
			d = appendPath(d, s, x)
			if wide {
				break
			}
		}
		b = append(b, `<path`...)
		if s.Rect {
			b = append(b, ` class="c"`...)
		}
		b = append(b, ` d="`...)
		b = append(b, d...)
		b = append(b, `" fill="`...)
		b = append(b, l.fg.String()...)
		if s.Cover < 1 {
			b = append(b, `" fill-opacity="`...)
			b = append(b, decimal(s.Cover, 2)...)
		}
		b = append(b, `"/>`...)
	}
	return b
}

// appendPath writes a shape, x units to the right.
func appendPath(b []byte, s cellfont.Shape, x float64) []byte {
	if s.Rect {
		p, q := s.Points[0], s.Points[2]
		return appendBox(b, x+p.X, p.Y, x+q.X, q.Y)
	}
	for i, p := range s.Points {
		c := byte('L')
		if i == 0 {
			c = 'M'
		}
		b = append(b, c)
		b = append(b, decimal(x+p.X, 2)...)
		b = append(b, ' ')
		b = append(b, decimal(p.Y, 2)...)
	}
	return append(b, 'z')
}

func appendBox(b []byte, x0, y0, x1, y1 float64) []byte {
	b = append(b, 'M')
	b = append(b, decimal(x0, 2)...)
	b = append(b, ' ')
	b = append(b, decimal(y0, 2)...)
	b = append(b, 'h')
	b = append(b, decimal(x1-x0, 2)...)
	b = append(b, 'v')
	b = append(b, decimal(y1-y0, 2)...)
	b = append(b, 'H')
	b = append(b, decimal(x0, 2)...)
	return append(b, 'z')
}

// appendStrokes writes underlines and their like, runs of equal ones as one path.
func appendStrokes(b []byte, looks []look) []byte {
	type line struct {
		under     vt.Underline
		attr      vt.Attr
		fg, color RGB
	}
	of := func(l *look) line {
		return line{l.underline, l.attr & (vt.Strike | vt.Overline), l.fg, l.under}
	}
	for from := 0; from < len(looks); {
		a := of(&looks[from])
		to := from + 1
		for to < len(looks) && of(&looks[to]) == a {
			to++
		}
		if a.under != 0 || a.attr != 0 {
			one := look{underline: a.under, attr: a.attr}
			strokes, under := one.strokes(float64((to - from) * cellfont.Width))
			b = appendStrokePath(b, strokes[:under], from, a.color)
			b = appendStrokePath(b, strokes[under:], from, a.fg)
		}
		from = to
	}
	return b
}

func appendStrokePath(b []byte, strokes []stroke, col int, c RGB) []byte {
	if len(strokes) == 0 {
		return b
	}
	b = append(b, `<path d="`...)
	x := float64(col * cellfont.Width)
	for _, s := range strokes {
		b = appendBox(b, x+s.x0, s.y0, x+s.x1, s.y1)
	}
	b = append(b, `" fill="`...)
	b = append(b, c.String()...)
	return append(b, `"/>`...)
}

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// escape makes text safe inside markup.
func escape(s string) string { return markup.Replace(clean(s)) }
