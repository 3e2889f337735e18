package check

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A masker makes volatile facts of a text stable; masks.Masker is one.
type masker interface{ Mask(b []byte) []byte }

// A view is the screen as it is now. What texts are taken from it are kept until it changes.
type view struct {
	*vt.Screen
	masks masker // nil: none
	texts map[areaKey]*areaText
	seen  uint64
	rows  int
	cols  int
}

func newView(s *vt.Screen, m masker) *view {
	v := &view{Screen: s, masks: m, texts: make(map[areaKey]*areaText)}
	v.seen = s.Generation()
	v.rows, v.cols = s.Size()
	return v
}

// fresh forgets the texts of a screen that is another by now.
func (v *view) fresh() {
	rows, cols := v.Size()
	if g := v.Generation(); g != v.seen || rows != v.rows || cols != v.cols {
		v.seen, v.rows, v.cols = g, rows, cols
		clear(v.texts)
	}
}

// An areaKey names the text of a part of the screen.
type areaKey struct {
	region      // the zero region is the whole screen
	one    bool // one row: region.Row, from the end where below 0
	joined bool // a wrapped line is one line
	masked bool
}

// An areaText is the text of a part of the screen, its lines with newlines between them, and where they stand.
type areaText struct {
	text  string
	lines []areaLine
	none  string // the part is not on the screen: why; everything else is empty
}

// An areaLine is a row of the screen, or several that wrap, or a piece of one.
type areaLine struct {
	row, col int
	text     string
}

// area returns the text of k. It is valid until the screen changes.
func (v *view) area(k areaKey) *areaText {
	if t := v.texts[k]; t != nil {
		return t
	}
	t := v.read(k)
	if k.masked && v.masks != nil && t.none == "" {
		t.mask(v.masks)
	}
	v.texts[k] = t
	return t
}

func (v *view) read(k areaKey) *areaText {
	rows, cols := v.Size()
	t := new(areaText)
	switch {
	case k.one:
		row := k.Row
		if row < 0 {
			row += rows
		}
		if row < 0 || row >= rows {
			t.none = sprintf("row %d is not on a screen of %d rows", k.Row, rows)
			return t
		}
		t.lines = []areaLine{{row, 0, v.Row(row)}}
	case k.Rows > 0:
		if k.Row+k.Rows > rows || k.Col+k.Cols > cols {
			t.none = sprintf("the region ends at row %d, column %d, not on a screen of %dx%d", k.Row+k.Rows-1, k.Col+k.Cols-1, rows, cols)
			return t
		}
		for i := k.Row; i < k.Row+k.Rows; i++ {
			t.lines = append(t.lines, areaLine{i, k.Col, v.piece(i, k.Col, k.Col+k.Cols)})
		}
	default:
		t.lines = v.whole(rows, k.joined)
	}
	t.join()
	return t
}

// whole returns the lines of the screen.
func (v *view) whole(rows int, joined bool) []areaLine {
	lines := make([]areaLine, 0, rows)
	for i := 0; i < rows; i++ {
		line := areaLine{i, 0, v.Row(i)}
		if joined && v.Wrapped(i) && i+1 < rows {
			var b strings.Builder
			b.WriteString(line.text)
			for ; v.Wrapped(i) && i+1 < rows; i++ {
				b.WriteString(strings.Repeat(" ", v.cutBlanks(i)))
				b.WriteString(v.Row(i + 1))
			}
			line.text = b.String()
		}
		lines = append(lines, line)
	}
	return lines
}

// cutBlanks returns how many blanks of a row that wraps are not in its text. One column may be left by a wide character.
func (v *view) cutBlanks(row int) int {
	n := v.cols - vt.StringWidth(v.Row(row))
	if n == 1 && v.Cell(row+1, 0).Width == 2 {
		return 0
	}
	return max(n, 0)
}

// piece returns the columns from…to of a row, without trailing blanks. Half a wide character is a blank.
func (v *view) piece(row, from, to int) string {
	var b strings.Builder
	cells := v.AppendCells(nil, row)
	for col := from; col < to && col < len(cells); col++ {
		c := &cells[col]
		switch {
		case c.Width == 0 && col > from:
		case c.Text == "" || c.Width == 0 || col+c.Width > to:
			b.WriteByte(' ')
		default:
			b.WriteString(c.Text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (t *areaText) join() {
	if len(t.lines) == 1 {
		t.text = t.lines[0].text
		return
	}
	var b strings.Builder
	for i, l := range t.lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	t.text = b.String()
}

// mask makes the text stable. The lines keep their places, as far as no mask took one away.
func (t *areaText) mask(m masker) {
	masked := m.Mask([]byte(t.text))
	t.text = string(masked)
	pieces := bytes.Split(masked, []byte("\n"))
	if len(pieces) != len(t.lines) {
		row := t.lines[0].row
		t.lines = t.lines[:0:0]
		for i := range pieces {
			t.lines = append(t.lines, areaLine{row: row + i})
		}
	}
	for i, p := range pieces {
		t.lines[i].text = string(p)
	}
}

// splitRows returns the rows of a text, without the blank one that a newline at its end makes.
func splitRows(s string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
}

func isBlankText(s string) bool { return strings.Trim(s, " \n") == "" }

// trimRows returns rows without trailing blanks and without blank rows at the end.
func trimRows(rows []string) []string {
	out := make([]string, len(rows))
	n := 0
	for i, r := range rows {
		if out[i] = strings.TrimRight(r, " "); out[i] != "" {
			n = i + 1
		}
	}
	return out[:n]
}
