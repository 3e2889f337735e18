package picture

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cellfont"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// svgFont is what text is drawn with; every run says how long it is, so that columns stand below each other in any of them.
const svgFont = `ui-monospace,'JetBrains Mono','SF Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace`

// svgZoom is how large a unit is at scale 1: letters of 16 pixels.
const svgZoom = 1.2

// An svgMaker writes SVG. A cell has 8 by 16 units.
type svgMaker struct {
	settings
	w      *bufio.Writer
	size   size
	frame  frame
	base   RGB // what is behind everything
	paints map[*Colors]*paint
	buf    []byte

	ids map[[16]byte]int // of lines that are written, by their picture
}

func newSVG(w io.Writer, of size, set settings, first *Picture) *svgMaker {
	m := &svgMaker{settings: set, w: bufio.NewWriter(w), size: of, frame: frameOf(set.Window, 1), paints: map[*Colors]*paint{}, ids: map[[16]byte]int{}}
	m.base = m.paint(first).bg
	return m
}

func (m *svgMaker) paint(p *Picture) *paint {
	if m.paints[p.Colors] == nil {
		if len(m.paints) > 64 {
			clear(m.paints)
		}
		m.paints[p.Colors] = m.Theme.paint(p.Colors)
	}
	return m.paints[p.Colors]
}

// writeStill writes one screen.
func writeStill(w io.Writer, s *session, o *Options) error {
	p, err := at(s, o)
	if err != nil {
		return err
	}
	set := o.settings()
	m := newSVG(w, size{p.Rows, p.Cols}, set, p)
	m.begin(set.title(s, p.Title))
	for i, l := range p.Lines {
		m.buf = m.appendLine(m.buf[:0], l, m.paint(p), p.Cols)
		if len(m.buf) > 0 {
			m.printf(`<g transform="translate(0 %d)">%s</g>`+"\n", i*cellfont.Height, m.buf)
		}
	}
	if c := p.Cursor; c.Visible {
		m.printf(`<rect %s transform="translate(%d %d)" fill="%s" fill-opacity=".6"/>`+"\n", cursorBox(c.Shape, p.cursorWidth()), c.Col*cellfont.Width, c.Row*cellfont.Height, m.paint(p).fg)
	}
	return m.end()
}

// writeSVG writes an animated SVG: each different line once, then which one each row shows when.
func writeSVG(w io.Writer, s *session, o *Options) error {
	set := o.settings()
	f := newFilm(s, set)
	var m *svgMaker
	var last *Picture
	reel := &reel{rows: make([]track, s.largest.rows)}
	for p, err := range f.pictures() {
		if err != nil {
			return err
		}
		if m == nil {
			m = newSVG(w, s.largest, set, p)
			m.begin(set.title(s, p.Title))
			m.printf("<defs><g id=\"l0\"/>\n")
		}
		for i := range reel.rows {
			if last != nil && i < min(p.Rows, last.Rows) && p.Lines[i] == last.Lines[i] && p.Colors == last.Colors && p.Cols == last.Cols {
				continue
			}
			id := 0
			if i < p.Rows {
				id = m.line(p.Lines[i], m.paint(p), p.Cols)
			}
			reel.rows[i].add(p.Time, "#l"+strconv.Itoa(id))
		}
		reel.cursor(p)
		last = p
	}
	m.printf("</defs>\n")
	m.reel(reel, max(f.end(), f.clock.film+tail))
	return m.end()
}

// line writes a line that was not written yet, and returns its number; 0 is an empty one.
func (m *svgMaker) line(l *Line, at *paint, cols int) int {
	m.buf = m.appendLine(m.buf[:0], l, at, cols)
	if len(m.buf) == 0 {
		return 0
	}
	sum := sha256.Sum256(m.buf)
	key := [16]byte(sum[:])
	id, ok := m.ids[key]
	if !ok {
		id = len(m.ids) + 1
		m.ids[key] = id
		m.printf(`<g id="l%d">%s</g>`+"\n", id, m.buf)
	}
	return id
}

// A reel is what every row, and the cursor, shows when.
type reel struct {
	rows               []track
	place, seen, shape track
}

// A track is the values of one attribute over time.
type track struct {
	times  []time.Duration
	values []string
}

func (t *track) add(at time.Duration, value string) {
	n := len(t.values)
	if n > 0 && t.values[n-1] == value {
		return
	}
	t.times, t.values = append(t.times, at), append(t.values, value)
}

func (r *reel) cursor(p *Picture) {
	c := p.Cursor
	if !c.Visible {
		r.seen.add(p.Time, "hidden")
		return
	}
	r.seen.add(p.Time, "visible")
	r.place.add(p.Time, fmt.Sprintf("%d,%d", c.Col*cellfont.Width, c.Row*cellfont.Height))
	r.shape.add(p.Time, cursorPath(c.Shape, p.cursorWidth()*cellfont.Width))
}

func (m *svgMaker) reel(r *reel, length time.Duration) {
	for i := range r.rows {
		t := &r.rows[i]
		if len(t.values) == 0 || len(t.values) == 1 && t.values[0] == "#l0" {
			continue
		}
		m.printf(`<use y="%d" href="%s">`, i*cellfont.Height, t.values[0])
		m.animate("animate", `attributeName="href"`, t, length)
		m.printf("</use>\n")
	}
	if len(r.place.values) == 0 {
		return
	}
	m.printf(`<g visibility="%s">`, r.seen.values[0])
	m.animate("animate", `attributeName="visibility"`, &r.seen, length)
	m.printf(`<path d="%s" fill="%s" fill-opacity=".6" transform="translate(%s)">`, r.shape.values[0], m.Theme.FG, r.place.values[0])
	m.animate("animate", `attributeName="d"`, &r.shape, length)
	m.animate("animateTransform", `attributeName="transform" type="translate"`, &r.place, length)
	m.printf("</path></g>\n")
}

// animate has an attribute take the values of a track, over and over.
func (m *svgMaker) animate(element, what string, t *track, length time.Duration) {
	if len(t.values) < 2 {
		return
	}
	m.printf(`<%s %s calcMode="discrete" dur="%ss" repeatCount="indefinite" values="`, element, what, decimal(length.Seconds(), 3))
	for i, v := range t.values {
		if i > 0 {
			m.printf(";")
		}
		m.printf("%s", v)
	}
	m.printf(`" keyTimes="0`)
	for _, at := range t.times[1:] {
		m.printf(";%s", decimal(min(at.Seconds()/length.Seconds(), 1), 7))
	}
	m.printf(`"/>`)
}

func (m *svgMaker) begin(title string) {
	w := m.frame.left + m.size.cols*cellfont.Width + m.frame.right
	h := m.frame.top + m.size.rows*cellfont.Height + m.frame.bottom
	zoom := svgZoom * float64(m.Scale)
	m.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%s" height="%s" role="img">`+"\n", w, h, decimal(float64(w)*zoom, 1), decimal(float64(h)*zoom, 1))
	m.printf("<title>%s</title>\n", escape(title))
	m.printf(`<style>text{font:13.333px %s;white-space:pre;font-variant-ligatures:none;unicode-bidi:bidi-override;direction:ltr}.b{font-weight:700}.i{font-style:italic}.c{shape-rendering:crispEdges}</style>`+"\n", svgFont)
	radius := 0
	if m.Window {
		radius = 7
	}
	m.printf(`<rect width="%d" height="%d" rx="%d" fill="%s"/>`+"\n", w, h, radius, m.base)
	if m.Window {
		m.window(w, title)
	}
	m.printf(`<svg x="%d" y="%d" width="%d" height="%d">`+"\n", m.frame.left, m.frame.top, m.size.cols*cellfont.Width, m.size.rows*cellfont.Height)
}

func (m *svgMaker) window(w int, title string) {
	m.printf(`<path d="M0 20V7a7 7 0 0 1 7-7H%da7 7 0 0 1 7 7V20z" fill="%s"/>`+"\n", w-7, m.Theme.Bar)
	for i, c := range lights {
		m.printf(`<circle cx="%d" cy="%d" r="%s" fill="%s"/>`, lightX+i*lightStep, lightY-2, decimal(lightRadius, 1), c)
	}
	from := lightX + 3*lightStep
	if room := (w - 2*from) / cellfont.Width; room > 0 {
		m.printf(`<text x="%d" y="14.3" text-anchor="middle" fill="%s">%s</text>`+"\n", w/2, m.Theme.BarText, escape(cut(title, room)))
	}
}

func (m *svgMaker) end() error {
	m.printf("</svg>\n</svg>\n")
	return m.w.Flush()
}

func (m *svgMaker) printf(format string, args ...any) { _, _ = fmt.Fprintf(m.w, format, args...) } // Flush says what failed

// String returns the colour as SVG and CSS have it.
func (c RGB) String() string {
	return "#" + hex.EncodeToString([]byte{byte(c >> 16), byte(c >> 8), byte(c)})
}

func decimal(v float64, digits int) string {
	return strconv.FormatFloat(round(v, digits), 'f', -1, 64)
}

func round(v float64, digits int) float64 {
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', digits, 64), 64)
	return r
}

func cursorBox(shape, columns int) string {
	width := columns * cellfont.Width
	switch {
	case shape == 3 || shape == 4:
		return fmt.Sprintf(`y="14" width="%d" height="2"`, width)
	case shape >= 5:
		return `width="1.5" height="16"`
	}
	return fmt.Sprintf(`width="%d" height="16"`, width)
}

func cursorPath(shape, width int) string {
	switch {
	case shape == 3 || shape == 4:
		return fmt.Sprintf("M0 14h%dv2h-%[1]dz", width)
	case shape >= 5:
		return "M0 0h1.5v16h-1.5z"
	}
	return fmt.Sprintf("M0 0h%dv16h-%[1]dz", width)
}

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
	return fmt.Appendf(b, `<rect class="c" x="%d" width="%d" height="16" fill="%s"/>`, from*cellfont.Width, (to-from)*cellfont.Width, c)
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

var textClasses = map[vt.Attr]string{vt.Bold: ` class="b"`, vt.Italic: ` class="i"`, vt.Bold | vt.Italic: ` class="b i"`}

func appendText(b []byte, run []look, col int) []byte {
	width, text := 0, make([]byte, 0, len(run))
	for i := range run {
		width += int(run[i].width)
		text = append(text, cmp.Or(run[i].text, " ")...)
	}
	return fmt.Appendf(b, `<text x="%d" y="12.5" textLength="%d" lengthAdjust="spacingAndGlyphs"%s fill="%s">%s</text>`, col*cellfont.Width,
		width*cellfont.Width, textClasses[run[0].attr&(vt.Bold|vt.Italic)], run[0].fg, escape(string(text)))
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
		class, opacity := "", ""
		if s.Rect {
			class = ` class="c"`
		}
		if s.Cover < 1 {
			opacity = ` fill-opacity="` + decimal(s.Cover, 2) + `"`
		}
		b = fmt.Appendf(b, `<path%s d="%s" fill="%s"%s/>`, class, d, l.fg, opacity)
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
		b = fmt.Appendf(b, "%c%s %s", "ML"[min(i, 1)], decimal(x+p.X, 2), decimal(p.Y, 2))
	}
	return append(b, 'z')
}

func appendBox(b []byte, x0, y0, x1, y1 float64) []byte {
	return fmt.Appendf(b, "M%s %sh%sv%sH%sz", decimal(x0, 2), decimal(y0, 2), decimal(x1-x0, 2), decimal(y1-y0, 2), decimal(x0, 2))
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
	var d []byte
	x := float64(col * cellfont.Width)
	for _, s := range strokes {
		d = appendBox(d, x+s.x0, s.y0, x+s.x1, s.y1)
	}
	return fmt.Appendf(b, `<path d="%s" fill="%s"/>`, d, c)
}

var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// escape makes text safe inside markup.
func escape(s string) string { return markup.Replace(clean(s)) }
