package fidelity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/columns"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// A Screen is what a terminal showed at one moment.
type Screen struct {
	Rows   []string // text, from the top, as many as the terminal has, without trailing blanks
	Cols   int
	Cursor ScreenCursor
	Alt    bool // the alternate screen was shown
	Title  string
	Moving []Moving // rows that change by themselves, by row
}

// A ScreenCursor is where a terminal's cursor stands, from 0.
type ScreenCursor struct {
	Row, Col int
	Visible  bool
}

// Moving is a row in which something changes while nothing is typed and nothing is answered: a spinner, a clock. What moves
// lies between the first Head characters of the row and its last Tail, which stand still.
type Moving struct{ Row, Head, Tail int }

// TitleRow is the Row of a title that moves.
const TitleRow = -1

// A Moment is a screen of a run: the one that somebody looked at who then typed, or the last.
type Moment struct {
	Screen
	TMS    int64  // ms after the terminal's beginning
	G      uint64 // the recorder's ordinal of what was typed; 0 where there is none
	Typed  int64  // how many bytes had been typed before
	Before string // what was typed then, in words; "" at the end
	End    bool
	// Drawing says that the program was still printing: what stands there is a matter of moments, and does not compare.
	Drawing bool
}

// A Showing is what the terminal of a run showed.
type Showing struct {
	Moments []Moment // in order, the end last
	// History are the rows that had left the screen at its top by the end, the oldest first; Lost is how many older ones were
	// not kept.
	History []string
	Lost    int
}

// Screens have CompareLanes compare what two terminals showed, in a lane of its own. Bytes that a program prints to draw the
// same are a matter of moments; what stands on the screen when somebody types, and at the end, is not.
type Screens struct {
	// Load returns what the terminal of a side showed. It is called where that is needed: where Gate says so, or bytes differ.
	Load func(Side) (*Showing, error)
	// Stream is which stream of the program the terminal's output is on its tape: 1 for stdout, 2 for stderr.
	Stream int
	// Gate has the screens count in the place of that stream's bytes. Without, the bytes count, and where they differ the
	// report says what the screens tell.
	Gate bool
	// Mask takes the volatile parts out of a row. nil compares rows as they stand.
	Mask func(row string) string

	live screenCompare // of Same
}

// Same reports whether two screens compare as one. It is for one goroutine at a time.
func (s *Screens) Same(a, b *Screen) bool {
	s.live.mask = s.Mask
	return len(s.live.fields(a, b)) == 0 && len(s.live.rows(a, b)) == 0
}

// AnimationMask is the name under which a report counts the rows that were compared without what moves in them.
const AnimationMask = "animation"

// maxRowNames is how many moving rows the note of a report shows.
const maxRowNames = 3

// A screenCompare compares screens, and remembers what it took for animation.
type screenCompare struct {
	mask   func(string) string
	masked map[string]string // rows and what the mask made of them
	moving int               // rows that were compared without what moves in them
	names  []string          // the first of them
}

// A rowChange is a row in which two screens differ.
type rowChange struct {
	row      int
	was, now string
}

// maxMasked bounds the rows whose masked form is remembered.
const maxMasked = 1 << 14

func (c *screenCompare) masks(row string) string {
	if c.mask == nil || row == "" {
		return row
	}
	if m, ok := c.masked[row]; ok {
		return m
	}
	if c.masked == nil || len(c.masked) > maxMasked {
		c.masked = make(map[string]string)
	}
	m := c.mask(row)
	c.masked[row] = m
	return m
}

// rows lists the rows in which two screens of one size differ.
func (c *screenCompare) rows(a, b *Screen) (out []rowChange) {
	if len(a.Rows) != len(b.Rows) {
		return nil // the size says so
	}
	for i, was := range a.Rows {
		if now := b.Rows[i]; was != now && !c.alike(was, now, movingAt(a.Moving, i), movingAt(b.Moving, i)) {
			out = append(out, rowChange{i, was, now})
		}
	}
	return out
}

// alike reports whether two rows that differ compare as one: masked, and without what moves in them.
func (c *screenCompare) alike(was, now string, ma, mb *Moving) bool {
	if c.masks(was) == c.masks(now) {
		return true
	}
	if ma == nil && mb == nil {
		return false
	}
	m := still(ma, mb)
	headA, tailA, okA := m.cut(was)
	headB, tailB, okB := m.cut(now)
	if !okA || !okB || c.masks(headA) != c.masks(headB) || c.masks(tailA) != c.masks(tailB) {
		return false
	}
	c.moving++
	if name := strings.TrimSpace(was); len(c.names) < maxRowNames && name != "" && !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
	return true
}

func movingAt(all []Moving, row int) *Moving {
	if i := slices.IndexFunc(all, func(m Moving) bool { return m.Row == row }); i >= 0 {
		return &all[i]
	}
	return nil
}

// still is what stands still on both sides, as far as they are known to move.
func still(a, b *Moving) Moving {
	switch {
	case a == nil:
		return *b
	case b == nil:
		return *a
	}
	return Moving{Head: min(a.Head, b.Head), Tail: min(a.Tail, b.Tail)}
}

// cut returns what stands still of a row; not ok where the row is too short for it.
func (m Moving) cut(row string) (head, tail string, ok bool) {
	r := []rune(row)
	if len(r) < m.Head+m.Tail {
		return "", "", false
	}
	return string(r[:m.Head]), string(r[len(r)-m.Tail:]), true
}

// A screenField is something of a screen, beside its rows, in which two differ.
type screenField struct {
	category Category
	was, now string
}

func (c *screenCompare) fields(a, b *Screen) (out []screenField) {
	add := func(cat Category, was, now string) {
		if was != now {
			out = append(out, screenField{cat, was, now})
		}
	}
	add(ScreenSize, fmt.Sprintf("%d by %d", len(a.Rows), a.Cols), fmt.Sprintf("%d by %d", len(b.Rows), b.Cols))
	add(ScreenAlternate, screenOf(a.Alt), screenOf(b.Alt))
	if a.Title != b.Title && !c.alike(a.Title, b.Title, movingAt(a.Moving, TitleRow), movingAt(b.Moving, TitleRow)) {
		add(ScreenTitle, fmt.Sprintf("%q", a.Title), fmt.Sprintf("%q", b.Title))
	}
	// What moves takes the cursor with it, and hides it meanwhile.
	if !animated(a) && !animated(b) || a.Cursor.Visible && b.Cursor.Visible && !onMoving(a) && !onMoving(b) {
		add(ScreenCursorAt, a.Cursor.String(), b.Cursor.String())
	}
	return out
}

// animated reports whether a row moves.
func animated(s *Screen) bool {
	return slices.ContainsFunc(s.Moving, func(m Moving) bool { return m.Row >= 0 })
}

func onMoving(s *Screen) bool { return movingAt(s.Moving, s.Cursor.Row) != nil }

// String says where the cursor is, from 1 as terminals count. Where it is not seen, it is nowhere.
func (c ScreenCursor) String() string {
	if !c.Visible {
		return "hidden"
	}
	return fmt.Sprintf("row %d, column %d", c.Row+1, c.Col+1)
}

func screenOf(alt bool) string {
	if alt {
		return "the alternate screen"
	}
	return "the primary screen"
}

// change shows a row with what differs in it, cell by cell.
func (r rowChange) change(what string) Change {
	was, now := visible.Line(r.was), visible.Line(r.now)
	c := Change{Path: fmt.Sprintf("%s %d", what, r.row+1), Op: Changed, Was: was, Now: now, Marks: marks(was, now), NewText: r.now}
	switch {
	case was == "":
		c.Op, c.Marks = Added, ""
	case now == "":
		c.Op, c.Marks = Removed, ""
	}
	return c
}

// marks is a line that has a ^ below each column in which two rows differ.
func marks(was, now string) string {
	a, b := columns.Of(was), columns.Of(now)
	out := make([]byte, max(len(a), len(b)))
	for i := range out {
		out[i] = ' '
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			out[i] = '^'
		}
	}
	return strings.TrimRight(string(out), " ")
}
