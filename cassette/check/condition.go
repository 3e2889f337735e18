package check

import (
	"fmt"
	"strings"

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
	key   areaKey
	where string // as in: "row 3"
	want  *frameWant
	text  string   // of contains, masked where the screen is
	rows  []string // of equals, the same
	runes []rune   // what near looks for
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
	longest := ""
	for _, line := range strings.Split(c.text, "\n") {
		if len(line) > len(longest) {
			longest = line
		}
	}
	c.runes = []rune(longest)
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
	if len(c.runes) == 0 || c.want.Matches.Regexp != nil {
		return -1, 0
	}
	t := v.area(c.key)
	if c.want.Equals != nil {
		return c.farRows(t), len(t.text)
	}
	far = -1
	for _, l := range t.lines {
		cost += len(c.runes) * len(l.text)
		if a := align(c.runes, []rune(l.text)); a.alike(c.runes) && (far < 0 || a.distance < far) {
			far = a.distance
		}
	}
	return far, cost
}

// farRows counts the characters that are not as wanted, place by place.
func (c *textCondition) farRows(t *areaText) int {
	far := 0
	for i := range max(len(t.lines), len(c.rows)) {
		got, want := "", ""
		if i < len(t.lines) {
			got = strings.TrimRight(t.lines[i].text, " ")
		}
		if i < len(c.rows) {
			want = c.rows[i]
		}
		if got != want {
			far += unlike([]rune(got), []rune(want))
		}
	}
	return far
}

// unlike counts the places at which two texts differ.
func unlike(a, b []rune) int {
	n := max(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n--
		}
	}
	return n
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
		a := align(c.runes, []rune(l.text))
		if a.alike(c.runes) && (best == nil || a.distance < at.distance) {
			best, at = &t.lines[i], a
		}
	}
	if best == nil {
		return "nothing like it", excerptLines(v, c.plain(v), nil)
	}
	runes := []rune(best.text)
	line := Line{Row: best.row, Col: best.col, Text: best.text, Wanted: string(c.runes), WantedCol: vt.StringWidth(string(runes[:at.start]))}
	line.Marks = marksOf(runes, &at)
	if at.distance == 0 { // of several lines this one is there
		return sprintf("the line %s stands in row %d, what stands around it does not", quote(string(c.runes)), best.row), excerptLines(v, t, []Line{line})
	}
	return sprintf("nearest is row %d: %s", best.row, quote(string(runes[at.start:at.end]))), excerptLines(v, t, []Line{line})
}

// marksOf returns the columns of what differs.
func marksOf(runes []rune, a *alignment) (marks [][2]int) {
	add := func(from, to int) {
		if n := len(marks); n > 0 && marks[n-1][1] == from {
			marks[n-1][1] = to
			return
		}
		marks = append(marks, [2]int{from, to})
	}
	col := vt.StringWidth(string(runes[:a.start]))
	for i, differs := range a.differs {
		next := vt.StringWidth(string(runes[:a.start+i+1]))
		if differs && next > col {
			add(col, next)
		}
		col = next
	}
	if a.cut {
		add(col, col+1)
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
	line := Line{Row: l.row, Col: l.col, Text: got, Wanted: want, WantedCol: 0, HasWanted: true}
	g, w := []rune(got), []rune(want)
	from, col := -1, 0
	for i := range max(len(g), len(w)) {
		same := i < len(g) && i < len(w) && g[i] == w[i]
		next := col + 1
		if i < len(g) {
			next = col + vt.StringWidth(string(g[i]))
		}
		if !same && from < 0 {
			from = col
		}
		if same && from >= 0 {
			line.Marks = append(line.Marks, [2]int{from, col})
			from = -1
		}
		col = next
	}
	if from >= 0 {
		line.Marks = append(line.Marks, [2]int{from, max(col, from+1)})
	}
	return line
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

// An alignment is where a line is nearest to a wanted text.
type alignment struct {
	distance   int    // characters to put in, take out or change
	start, end int    // of the nearest part of the line, in characters
	differs    []bool // for start…end: this character is not as wanted, or one before it is missing
	cut        bool   // something is missing at the end
}

// Bounds of what is aligned, in characters. What is longer is compared as far as that.
const (
	maxWanted = 256
	maxLine   = 1024
)

// align finds the part of line that wanted is nearest to (Sellers), by edit distance. Wanted as a whole counts, the line's ends
// do not.
func align(wanted, line []rune) alignment {
	wanted, line = wanted[:min(len(wanted), maxWanted)], line[:min(len(line), maxLine)]
	n, m := len(wanted), len(line)
	width := m + 1
	d := make([]uint16, (n+1)*width)
	for i := 1; i <= n; i++ {
		d[i*width] = uint16(i)
		for j := 1; j <= m; j++ {
			change := d[(i-1)*width+j-1]
			if wanted[i-1] != line[j-1] {
				change++
			}
			d[i*width+j] = min(change, d[(i-1)*width+j]+1, d[i*width+j-1]+1)
		}
	}
	end := 0
	for j := 1; j <= m; j++ {
		if d[n*width+j] < d[n*width+end] {
			end = j
		}
	}
	for end < m && d[n*width+end+1] == d[n*width+end] {
		end++ // another character in place of a missing one
	}
	return walkBack(wanted, line, d, end)
}

// walkBack follows the table from the end of the nearest part to its start.
func walkBack(wanted, line []rune, d []uint16, end int) alignment {
	width := len(line) + 1
	a := alignment{distance: int(d[len(wanted)*width+end]), end: end}
	marks := make([]bool, len(line)+1)
	i, j := len(wanted), end
	for i > 0 {
		here := d[i*width+j]
		switch {
		case j > 0 && wanted[i-1] == line[j-1] && here == d[(i-1)*width+j-1]:
			i, j = i-1, j-1
		case j > 0 && here == d[(i-1)*width+j-1]+1:
			i, j = i-1, j-1
			marks[j] = true
		case here == d[(i-1)*width+j]+1:
			i--
			if j < end {
				marks[j] = true
			} else {
				a.cut = true
			}
		default:
			j--
			marks[j] = true
		}
	}
	a.start, a.differs = j, marks[j:end]
	return a
}

// alike tells whether a is near enough to be shown as what wanted may have become.
func (a *alignment) alike(wanted []rune) bool { return 2*a.distance <= min(len(wanted), maxWanted) }
