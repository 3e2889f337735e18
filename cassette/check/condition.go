package check

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

var sprintf = fmt.Sprintf

// An answer is what a condition says of one screen.
type answer uint8

const (
	no answer = iota
	yes
	cannot // there is nothing to look at: a row that this screen does not have
)

// A condition is what an assertion wants of a screen.
type condition interface {
	holds(v *view) answer
	wanted() string // as in: wanted …
	// came says what stands there in place of what is wanted or, where the condition holds, where it does.
	came(v *view) (string, *Excerpt)
	// near tells how far the screen is from what is wanted, less is nearer; below 0 it does not know. cost is what that took.
	near(v *view) (far, cost int)
}

// A textCondition looks for text in a part of the screen.
type textCondition struct {
	key     areaKey
	where   string // as in: "row 3"
	want    *frameWant
	text    string   // of contains, masked where the screen is
	rows    []string // of equals, the same
	longest string   // line of text, which near looks for
}

func newTextCondition(w *frameWant, masks masker) *textCondition {
	c := &textCondition{want: w, where: "the screen", text: strings.TrimSuffix(w.Contains, "\n")} // a YAML block ends with one
	c.key.masked = masks != nil
	switch {
	case w.Row != nil:
		c.key.one, c.key.Row, c.where = true, *w.Row, sprintf("row %d", *w.Row)
	case w.Region != nil:
		c.key.region = *w.Region
		c.where = sprintf("the region of %dx%d at %d,%d", w.Region.Rows, w.Region.Cols, w.Region.Row, w.Region.Col)
	default:
		c.key.joined = w.Equals == nil
	}
	if w.Equals != nil {
		c.rows = trimRows(*w.Equals)
		c.text = strings.Join(c.rows, "\n")
	}
	if masks != nil {
		c.text = string(masks.Mask([]byte(c.text)))
		c.rows = trimRows(strings.Split(c.text, "\n"))
		c.where += ", masked,"
	}
	for _, line := range strings.Split(c.text, "\n") {
		if len(line) > len(c.longest) {
			c.longest = line
		}
	}
	return c
}

func (c *textCondition) holds(v *view) answer {
	t := v.area(c.key)
	switch {
	case t.none != "":
		return cannot
	case c.want.Equals != nil:
		return truth(c.equal(t))
	case c.want.Matches.Regexp != nil:
		return truth(c.want.Matches.MatchString(t.text))
	}
	return truth(strings.Contains(t.text, c.text))
}

func truth(b bool) answer {
	if b {
		return yes
	}
	return no
}

func (c *textCondition) equal(t *areaText) bool {
	n := 0
	for i, l := range t.lines {
		if i < len(c.rows) {
			if strings.TrimRight(l.text, " ") != c.rows[i] {
				return false
			}
			n++
		} else if l.text != "" {
			return false
		}
	}
	return n == len(c.rows)
}

func (c *textCondition) wanted() string {
	switch {
	case c.want.Equals != nil:
		return sprintf("%s is %s", c.where, listedRows(*c.want.Equals))
	case c.want.Matches.Regexp != nil:
		return sprintf("%s matches %s", c.where, quote(c.want.Matches.text))
	}
	return sprintf("%s contains %s", c.where, quote(c.text))
}

func (c *textCondition) near(v *view) (far, cost int) {
	if c.longest == "" || c.want.Matches.Regexp != nil {
		return -1, 0
	}
	t := v.area(c.key)
	if c.want.Equals != nil {
		return c.farRows(t), len(t.text)
	}
	far = -1
	for _, l := range t.lines {
		cost += len(c.longest) * len(l.text)
		if d := distance([]rune(c.longest), []rune(l.text)); 2*d <= utf8.RuneCountInString(c.longest) && (far < 0 || d < far) {
			far = d
		}
	}
	return far, cost
}

// distance is how many characters are to be put in, taken out or changed for wanted to stand anywhere in line (Sellers).
func distance(wanted, line []rune) int {
	row := make([]int, len(line)+1)
	for i, w := range wanted {
		before := row[0]
		row[0] = i + 1
		for j, c := range line {
			change := before
			if w != c {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return slices.Min(row)
}

// farRows counts the characters that are not as wanted, place by place.
func (c *textCondition) farRows(t *areaText) (far int) {
	for i := range max(len(t.lines), len(c.rows)) {
		var got, want []rune
		if i < len(t.lines) {
			got = []rune(strings.TrimRight(t.lines[i].text, " "))
		}
		if i < len(c.rows) {
			want = []rune(c.rows[i])
		}
		far += max(len(got), len(want))
		for k := range min(len(got), len(want)) {
			if got[k] == want[k] {
				far--
			}
		}
	}
	return far
}

func (c *textCondition) came(v *view) (string, *Excerpt) {
	t := v.area(c.key)
	switch {
	case t.none != "":
		return t.none, excerptOf(v, nil)
	case c.want.Equals != nil:
		return c.cameRows(v, t)
	case c.want.Matches.Regexp != nil:
		if at := c.want.Matches.FindStringIndex(t.text); at != nil {
			return c.cameFound(v, t, at[0], at[1])
		}
		return "it matches nowhere", excerptLines(v, c.plain(v), nil)
	}
	if i := strings.Index(t.text, c.text); i >= 0 {
		return c.cameFound(v, t, i, i+len(c.text))
	}
	return c.cameNear(v, t)
}

// plain is the text with every row of the screen as a line of its own.
func (c *textCondition) plain(v *view) *areaText {
	k := c.key
	k.joined = false
	return v.area(k)
}

// cameFound marks the text from byte start to end.
func (c *textCondition) cameFound(v *view, t *areaText, start, end int) (string, *Excerpt) {
	var marked []Line
	first, at := -1, 0
	for _, l := range t.lines {
		from, to := max(start-at, 0), min(end-at, len(l.text))
		if at <= end && from <= to && start <= at+len(l.text) {
			if first < 0 {
				first = l.row
			}
			marked = append(marked, Line{Row: l.row, Text: l.text, Col: l.col,
				Marks: [][2]int{{vt.StringWidth(l.text[:from]), vt.StringWidth(l.text[:to])}}})
		}
		at += len(l.text) + 1
	}
	return sprintf("%s at row %d", quote(t.text[start:end]), first), excerptLines(v, t, marked)
}

// cameNear marks what differs in the line that is nearest.
func (c *textCondition) cameNear(v *view, t *areaText) (string, *Excerpt) {
	var best *areaLine
	var at alignment
	for i, l := range t.lines {
		a := align(c.longest, l.text)
		if a.alike(c.longest) && (best == nil || a.distance < at.distance) {
			best, at = &t.lines[i], a
		}
	}
	if best == nil {
		return "nothing like it", excerptLines(v, c.plain(v), nil)
	}
	line := Line{Row: best.row, Col: best.col, Text: best.text, Wanted: c.longest, WantedCol: vt.StringWidth(best.text[:at.start])}
	line.Marks = marksOf(best.text, at.edits)
	if at.distance == 0 { // of several lines this one is there
		return sprintf("the line %s stands in row %d, what stands around it does not", quote(c.longest), best.row), excerptLines(v, t, []Line{line})
	}
	return sprintf("nearest is row %d: %s", best.row, quote(best.text[at.start:at.end])), excerptLines(v, t, []Line{line})
}

// marksOf returns the columns of what differs, and the one behind where something is missing.
func marksOf(line string, edits []udiff.Edit) (marks [][2]int) {
	for _, e := range edits {
		from := vt.StringWidth(line[:e.Start])
		to := max(vt.StringWidth(line[:e.End]), from+1)
		if n := len(marks); n > 0 && marks[n-1][1] >= from {
			marks[n-1][1] = to
			continue
		}
		marks = append(marks, [2]int{from, to})
	}
	return marks
}

// cameRows marks the rows that are not as wanted.
func (c *textCondition) cameRows(v *view, t *areaText) (string, *Excerpt) {
	var marked []Line
	for i, l := range t.lines {
		want := ""
		if i < len(c.rows) {
			want = c.rows[i]
		}
		if got := strings.TrimRight(l.text, " "); got != want {
			marked = append(marked, differing(l, got, want))
		}
	}
	if len(c.rows) > len(t.lines) {
		return sprintf("%s wanted, there are %d", countOf(len(c.rows), "row"), len(t.lines)), excerptLines(v, t, marked)
	}
	if len(marked) == 0 {
		return "it is", excerptLines(v, t, nil)
	}
	return sprintf("%d of %s not as wanted, the first is row %d", len(marked), countOf(len(t.lines), "row"), marked[0].Row), excerptLines(v, t, marked)
}

// differing is a line of which the cells are marked that are not as wanted.
func differing(l areaLine, got, want string) Line {
	return Line{Row: l.row, Col: l.col, Text: got, Wanted: want, HasWanted: true, Marks: marksOf(got, udiff.Strings(got, want))}
}

// listedRows names rows, as many as a line holds.
func listedRows(rows []string) string {
	if len(rows) == 1 {
		return quote(rows[0])
	}
	return sprintf("the %d rows of equals", len(rows))
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return sprintf("%d %ss", n, what)
}

// An alignment is the part of a line that a wanted text may have become.
type alignment struct {
	distance   int          // characters to put in, take out or change
	start, end int          // of the part, in bytes
	edits      []udiff.Edit // of it, to what is wanted
}

// align compares a line with a wanted text, which counts as a whole; what the line has before and behind it does not.
func align(wanted, line string) alignment {
	a := alignment{end: len(line), edits: udiff.Strings(line, wanted)}
	if n := len(a.edits); n > 0 && a.edits[n-1].End == len(line) && a.edits[n-1].New == "" {
		a.end, a.edits = a.edits[n-1].Start, a.edits[:n-1]
	}
	if len(a.edits) > 0 && a.edits[0].Start == 0 && a.edits[0].New == "" {
		a.start, a.edits = a.edits[0].End, a.edits[1:]
	}
	for _, e := range a.edits {
		a.distance += max(utf8.RuneCountInString(line[e.Start:e.End]), utf8.RuneCountInString(e.New))
	}
	return a
}

// alike tells whether a is near enough to be shown as what wanted may have become.
func (a *alignment) alike(wanted string) bool { return 2*a.distance <= utf8.RuneCountInString(wanted) }
