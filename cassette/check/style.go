package check

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A colorOf is a colour of a scenario.
type colorOf vt.Color

var colorNames = [8]string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// UnmarshalJSON reads a name, a number of the palette or #rrggbb.
func (c *colorOf) UnmarshalJSON(b []byte) error {
	var n uint8
	if b[0] != '"' {
		err := json.Unmarshal(b, &n)
		*c = colorOf(vt.ColorIndexed | vt.Color(n))
		return err
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*c = colorNamed(s)
	return nil
}

// colorNamed returns the colour that s, which has the form of one, is.
func colorNamed(s string) colorOf {
	if s == "default" {
		return colorOf(vt.ColorDefault)
	}
	if hex, ok := strings.CutPrefix(s, "#"); ok {
		n, _ := strconv.ParseUint(hex, 16, 32)
		return colorOf(vt.ColorRGB | vt.Color(n))
	}
	plain, bright := strings.CutPrefix(s, "bright ")
	for i, name := range colorNames {
		if name == plain {
			if bright {
				i += 8
			}
			return colorOf(vt.ColorIndexed | vt.Color(i))
		}
	}
	n, _ := strconv.ParseUint(s, 10, 8)
	return colorOf(vt.ColorIndexed | vt.Color(n))
}

// colorText names a colour as a scenario does.
func colorText(c vt.Color) string {
	n := int(c & 0xffffff)
	switch {
	case c == vt.ColorDefault:
		return "default"
	case c&vt.ColorRGB != 0:
		return sprintf("#%06x", n)
	case n < 8:
		return colorNames[n]
	case n < 16:
		return "bright " + colorNames[n-8]
	}
	return strconv.Itoa(n)
}

// attributeBits are the attributes by the names that a scenario has for them.
var attributeBits = []struct {
	name string
	bit  vt.Attr
	of   func(*styleWant) *bool
}{
	{"bold", vt.Bold, func(w *styleWant) *bool { return w.Bold }},
	{"faint", vt.Faint, func(w *styleWant) *bool { return w.Faint }},
	{"italic", vt.Italic, func(w *styleWant) *bool { return w.Italic }},
	{"blink", vt.Blink, func(w *styleWant) *bool { return w.Blink }},
	{"reverse", vt.Reverse, func(w *styleWant) *bool { return w.Reverse }},
	{"hidden", vt.Hidden, func(w *styleWant) *bool { return w.Hidden }},
	{"strike", vt.Strike, func(w *styleWant) *bool { return w.Strike }},
	{"overline", vt.Overline, func(w *styleWant) *bool { return w.Overline }},
}

// stylePart wants a cell, or every cell of a text where it stands, to be drawn in a way.
func stylePart(w *styleWant) statePart {
	what := sprintf("the cell %d,%d", deref(w.Row), deref(w.Col))
	if w.Text != "" {
		what = quote(w.Text)
	}
	return statePart{
		want: what + " is " + strings.Join(w.list(), " "),
		got: func(v *view) (answer, string) {
			a, got, _ := w.look(v)
			return a, got
		},
		mark: func(v *view) []Line {
			_, _, line := w.look(v)
			if line == nil {
				return nil
			}
			return []Line{*line}
		},
	}
}

func deref(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// list names what is wanted, as in: bold fg red.
func (w *styleWant) list() (all []string) {
	for _, a := range attributeBits {
		if b := a.of(w); b != nil {
			all = append(all, not(*b, a.name))
		}
	}
	for _, c := range []struct {
		name string
		want *colorOf
	}{{"fg", w.FG}, {"bg", w.BG}, {"underline_color", w.UnderlineColor}} {
		if c.want != nil {
			all = append(all, c.name+" "+colorText(vt.Color(*c.want)))
		}
	}
	if w.Underline != nil {
		all = append(all, "underline "+*w.Underline)
	}
	if w.Link != nil {
		all = append(all, "link "+quote(*w.Link))
	}
	return all
}

func not(want bool, name string) string {
	if want {
		return name
	}
	return "not " + name
}

// differs names what of c is not as wanted.
func (w *styleWant) differs(c *vt.Cell) (all []string) {
	for _, a := range attributeBits {
		if b := a.of(w); b != nil && *b != (c.Style.Attr&a.bit != 0) {
			all = append(all, not(!*b, a.name))
		}
	}
	color := func(name string, want *colorOf, got vt.Color) {
		if want != nil && vt.Color(*want) != got {
			all = append(all, name+" "+colorText(got))
		}
	}
	color("fg", w.FG, c.Style.FG)
	color("bg", w.BG, c.Style.BG)
	color("underline_color", w.UnderlineColor, c.Style.UnderlineColor)
	if got := underlines[c.Style.Underline]; w.Underline != nil && *w.Underline != got {
		all = append(all, "underline "+got)
	}
	if w.Link != nil && *w.Link != c.Link {
		all = append(all, "link "+quote(c.Link))
	}
	return all
}

// look finds the cells and says what they are like. The line has those marked that are not as wanted or, where all are, all.
func (w *styleWant) look(v *view) (answer, string, *Line) {
	if w.Text == "" {
		rows, cols := v.Size()
		if *w.Row >= rows || *w.Col >= cols {
			return cannot, sprintf("the cell %d,%d is not on a screen of %dx%d", *w.Row, *w.Col, rows, cols), nil
		}
		return w.cells(v, *w.Row, *w.Col, *w.Col+1)
	}
	var first *Line
	var text string
	rows, _ := v.Size()
	for row := range rows {
		line, from := v.Row(row), 0
		for i := strings.Index(line, w.Text); i >= 0; i = strings.Index(line[from:], w.Text) {
			start := vt.StringWidth(line[:from+i])
			a, got, l := w.cells(v, row, start, start+vt.StringWidth(w.Text))
			if a == yes {
				return a, got, l
			}
			if first == nil {
				first, text = l, got
			}
			from += i + len(w.Text)
		}
	}
	if first == nil {
		return no, quote(w.Text) + " is in no row", nil
	}
	return no, text, first
}

// cells looks at the columns from…to of a row.
func (w *styleWant) cells(v *view, row, from, to int) (answer, string, *Line) {
	line := &Line{Row: row, Text: v.Row(row)}
	wrong := ""
	for col := from; col < to; col++ {
		c := v.Cell(row, col)
		if d := w.differs(&c); len(d) > 0 && c.Width > 0 {
			if wrong == "" {
				wrong = sprintf("the cell %d,%d is %s", row, col, strings.Join(d, " "))
			}
			if n := len(line.Marks); n > 0 && line.Marks[n-1][1] == col {
				line.Marks[n-1][1] = col + max(1, c.Width)
			} else {
				line.Marks = append(line.Marks, [2]int{col, col + max(1, c.Width)})
			}
		}
	}
	if wrong != "" {
		return no, wrong, line
	}
	line.Marks = [][2]int{{from, to}}
	return yes, sprintf("at %d,%d it is %s", row, from, strings.Join(w.list(), " ")), line
}
