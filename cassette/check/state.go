package check

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A stateCondition is what the terminal is like: every part that the assertion names.
type stateCondition struct {
	want  *stateWant
	parts []statePart
}

// A statePart is one thing that a terminal is or is not.
type statePart struct {
	want string
	got  func(v *view) (answer, string)
	mark func(v *view) []Line // what an excerpt marks; nil for nothing
}

func newStateCondition(w *stateWant) *stateCondition {
	c := &stateCondition{want: w}
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
