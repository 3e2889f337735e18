package check

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A stateCondition is what the terminal is like: every part that the assertion names.
type stateCondition struct {
	parts []statePart
}

// A statePart is one thing that a terminal is or is not.
type statePart struct {
	want string
	got  func(v *view) (answer, string)
	mark func(v *view) []Line // what an excerpt marks; nil for nothing
}

func newStateCondition(w *stateWant) *stateCondition {
	c := new(stateCondition)
	if w.Cursor != nil {
		c.parts = append(c.parts, cursorPart(w.Cursor))
	}
	if w.Size != nil {
		c.parts = append(c.parts, sizePart(*w.Size))
	}
	if w.Alternate != nil {
		c.parts = append(c.parts, alternatePart(*w.Alternate))
	}
	if w.Title != nil {
		c.parts = append(c.parts, titlePart(w.Title))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Modes)) {
		c.parts = append(c.parts, modePart(name, w.Modes[name]))
	}
	if w.Style != nil {
		c.parts = append(c.parts, stylePart(w.Style))
	}
	return c
}

func (c *stateCondition) holds(v *view) answer {
	all := yes
	for i := range c.parts {
		switch a, _ := c.parts[i].got(v); a {
		case no:
			return no
		case cannot:
			all = cannot
		}
	}
	return all
}

func (c *stateCondition) wanted() string {
	all := make([]string, len(c.parts))
	for i := range c.parts {
		all[i] = c.parts[i].want
	}
	return strings.Join(all, ", ")
}

func (c *stateCondition) came(v *view) (string, *Excerpt) {
	var all []string
	var marked []Line
	holds := c.holds(v) == yes
	for i := range c.parts {
		if a, got := c.parts[i].got(v); a != yes || holds {
			all = append(all, got)
			if c.parts[i].mark != nil {
				marked = append(marked, c.parts[i].mark(v)...)
			}
		}
	}
	return strings.Join(all, ", "), excerptOf(v, marked)
}

// near counts the parts that are not as wanted.
func (c *stateCondition) near(v *view) (far, cost int) {
	for i := range c.parts {
		if a, _ := c.parts[i].got(v); a != yes {
			far++
		}
	}
	return far, 64 * len(c.parts)
}

func cursorPart(w *cursorWant) statePart {
	var want []string
	if w.Row != nil {
		want = append(want, sprintf("in row %d", *w.Row))
	}
	if w.Col != nil {
		want = append(want, sprintf("in column %d", *w.Col))
	}
	if w.Visible != nil {
		want = append(want, seen(*w.Visible))
	}
	return statePart{
		want: "the cursor is " + strings.Join(want, ", "),
		got: func(v *view) (answer, string) {
			c := v.Cursor()
			ok := (w.Row == nil || c.Row == *w.Row) && (w.Col == nil || c.Col == *w.Col) && (w.Visible == nil || c.Visible == *w.Visible)
			return truth(ok), sprintf("the cursor is in row %d, column %d, %s", c.Row, c.Col, seen(c.Visible))
		},
		mark: func(v *view) []Line {
			c := v.Cursor()
			return []Line{{Row: c.Row, Text: v.Row(c.Row), Marks: [][2]int{{c.Col, c.Col + 1}}}}
		},
	}
}

func seen(visible bool) string {
	if visible {
		return "visible"
	}
	return "hidden"
}

func sizePart(w size) statePart {
	return statePart{
		want: sprintf("the size is %dx%d", w.Rows, w.Cols),
		got: func(v *view) (answer, string) {
			rows, cols := v.Size()
			return truth(size{rows, cols} == w), sprintf("the size is %dx%d", rows, cols)
		},
	}
}

func alternatePart(want bool) statePart {
	screens := map[bool]string{true: "the alternate screen shows", false: "the primary screen shows"}
	return statePart{want: screens[want], got: func(v *view) (answer, string) {
		return truth(v.Alt() == want), screens[v.Alt()]
	}}
}

func titlePart(w *titleWant) statePart {
	if w.Matches.Regexp != nil {
		return statePart{want: "the title matches " + quote(w.Matches.String()), got: func(v *view) (answer, string) {
			return truth(w.Matches.MatchString(v.Title())), "the title is " + quote(v.Title())
		}}
	}
	return statePart{want: "the title is " + quote(w.Text), got: func(v *view) (answer, string) {
		return truth(v.Title() == w.Text), "the title is " + quote(v.Title())
	}}
}

// modes are the private modes (DECSET) that have a name here. Of several numbers one that is set will do.
var modes = map[string][]int{
	"application_cursor":  {1},
	"reverse_video":       {5},
	"origin":              {6},
	"auto_wrap":           {7},
	"blinking_cursor":     {12},
	"mouse":               {9, 1000, 1002, 1003},
	"mouse_click":         {1000},
	"mouse_drag":          {1002},
	"mouse_motion":        {1003},
	"mouse_sgr":           {1006},
	"focus_events":        {1004},
	"alternate_scroll":    {1007},
	"bracketed_paste":     {2004},
	"synchronised_output": {2026},
}

func modePart(name string, want bool) statePart {
	numbers := modes[name]
	if numbers == nil {
		n, _ := strconv.Atoi(name) // of digits, by its pattern
		numbers = []int{n}
	}
	state := map[bool]string{true: "set", false: "reset"}
	return statePart{
		want: sprintf("the mode %s is %s", name, state[want]),
		got: func(v *view) (answer, string) {
			set, known := false, false
			for _, n := range numbers {
				s, k := v.Mode(true, n)
				set, known = set || s, known || k
			}
			if !known {
				return cannot, sprintf("the mode %s is one that this screen model does not know", name)
			}
			return truth(set == want), sprintf("the mode %s is %s", name, state[set])
		},
	}
}

var underlines = [...]string{
	vt.NoUnderline: "none", vt.SingleUnderline: "single", vt.DoubleUnderline: "double", vt.CurlyUnderline: "curly",
	vt.DottedUnderline: "dotted", vt.DashedUnderline: "dashed",
}

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
