package bench

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// A curve is how figures grow with the amount of something. Both axes of its picture are logarithmic: what grows in
// proportion is a straight line that rises with them.
type curve struct {
	X, Y  string // what the axes are, with units
	Lines []curveLine
}

// A curveLine is one figure at some amounts, in ascending order. Amounts and figures are above 0.
type curveLine struct {
	Name   string
	At     []float64
	Values []float64
}

// add appends a figure.
func (l *curveLine) add(at, value float64) {
	l.At, l.Values = append(l.At, at), append(l.Values, value)
}

// The picture's measures, in pixels.
const (
	curveWidth, curveHeight = 720, 360
	curveLeft, curveRight   = 80, 210 // the names of the lines stand at the right
	curveTop, curveBottom   = 20, 50
)

var curveColours = []string{"#0969da", "#bc4c00", "#1a7f37", "#8250df"}

// scale is one logarithmic axis: the decades around its values, and where they lie.
type scale struct{ from, to, begin, end float64 }

func newScale(begin, end float64, all []float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range all {
		low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
	}
	return scale{low, max(high, low+1), begin, end}
}

func (s scale) place(v float64) float64 {
	return s.begin + (math.Log10(v)-s.from)/(s.to-s.from)*(s.end-s.begin)
}

// decades are the powers of ten that the axis has.
func (s scale) decades() (out []float64) {
	for p := s.from; p <= s.to; p++ {
		out = append(out, math.Pow(10, p))
	}
	return out
}

// svg is the curve as a picture that stands alone, on a ground of its own.
func (c *curve) svg() string {
	var xs, ys []float64
	for _, l := range c.Lines {
		xs, ys = append(xs, l.At...), append(ys, l.Values...)
	}
	x, y := newScale(curveLeft, curveWidth-curveRight, xs), newScale(curveHeight-curveBottom, curveTop, ys)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", curveWidth, curveHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", curveWidth, curveHeight)
	for _, v := range x.decades() {
		b.WriteString(gridLine(x.place(v), y.begin, x.place(v), y.end) + label(x.place(v), y.begin+16, "middle", count(v)))
	}
	for _, v := range y.decades() {
		b.WriteString(gridLine(x.begin, y.place(v), x.end, y.place(v)) + label(x.begin-8, y.place(v)+4, "end", axisFigure(v)))
	}
	b.WriteString(label((x.begin+x.end)/2, curveHeight-10, "middle", c.X))
	fmt.Fprintf(&b, `<text transform="translate(16 %g) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (y.begin+y.end)/2, html.EscapeString(c.Y))
	for i, l := range c.Lines {
		b.WriteString(l.svg(x, y, curveColours[i%len(curveColours)]))
		fmt.Fprintf(&b, `<circle cx="%g" cy="%d" r="4" fill="%s"/>`, x.end+20, curveTop+10+20*i, curveColours[i%len(curveColours)])
		b.WriteString(label(x.end+30, float64(curveTop+14+20*i), "start", l.Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (l *curveLine) svg(x, y scale, colour string) string {
	var points, dots strings.Builder
	for i, at := range l.At {
		px, py := x.place(at), y.place(l.Values[i])
		fmt.Fprintf(&points, "%.1f,%.1f ", px, py)
		fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s</title></circle>`+"\n",
			px, py, colour, html.EscapeString(count(at)), html.EscapeString(figure(l.Values[i])))
	}
	return fmt.Sprintf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n%s", strings.TrimSpace(points.String()), colour, dots.String())
}

func gridLine(x1, y1, x2, y2 float64) string {
	return fmt.Sprintf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#d0d7de"/>`+"\n", x1, y1, x2, y2)
}

func label(x, y float64, anchor, text string) string {
	return fmt.Sprintf(`<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
}

// axisFigure writes a power of ten.
func axisFigure(v float64) string {
	if v >= 1 {
		return count(v)
	}
	return fmt.Sprintf("%g", v)
}

// table is the curve as a table, for who reads text: a row an amount, a column a line.
func (c *curve) table() string {
	columns := []string{c.X}
	var ats []float64
	for _, l := range c.Lines {
		columns = append(columns, l.Name)
		ats = append(ats, l.At...)
	}
	slices.Sort(ats)
	ats = slices.Compact(ats)
	out := "| " + strings.Join(columns, " | ") + " |\n" + strings.Repeat("|---", len(columns)) + "|\n"
	for _, at := range ats {
		cells := []string{count(at)}
		for _, l := range c.Lines {
			cells = append(cells, l.at(at))
		}
		out += "| " + strings.Join(cells, " | ") + " |\n"
	}
	return out
}

// at is the figure at an amount, "" where there is none.
func (l *curveLine) at(amount float64) string {
	for i, at := range l.At {
		if at == amount {
			return figure(l.Values[i])
		}
	}
	return ""
}
