package fidelity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/columns"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
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

// laneTerminal is the lane of what the terminals showed.
const laneTerminal = "terminal"

// shownRows is how many rows a divergence of screens shows before the others are counted.
const shownRows = 8

// hintScreens is for output that differs byte by byte and not on the screen.
const hintScreens = "the screens are the same whenever something was typed, and at the end: --tty compares them in the place of these bytes"

// compareScreens compares what the terminals showed. Where that does not gate, it says what it would have found.
func compareScreens(c *comparison) {
	s := c.o.Screens
	if s == nil {
		return
	}
	drawn := slices.IndexFunc(c.found, func(p placed) bool {
		return p.Lane == laneProgram && p.Category == streamCategory(s.Stream)
	})
	if !s.Gate && drawn < 0 {
		return // equal bytes draw equal screens
	}
	a, errA := s.Load(Recorded)
	b, errB := s.Load(Replay)
	if err := errors.Join(errA, errB); err != nil || a == nil || b == nil {
		if s.Gate {
			c.report.NotCompared = append(c.report.NotCompared, fmt.Sprintf("the screens: %v", err))
		}
		return
	}
	l := &screenLane{c: c, screenCompare: screenCompare{mask: s.Mask}}
	l.run(a, b)
	switch {
	case s.Gate:
		c.found = append(c.found, l.found...)
		c.report.Screens = l.looked
		l.tell()
	case len(l.found) == 0:
		c.found[drawn].Hint = hintScreens
	default:
		c.note("the screens differ, too (--tty compares them in the place of the bytes), first: %s", l.found[0].Message)
	}
}

func streamCategory(stream int) Category {
	if stream == 2 {
		return ProcessStderrHash
	}
	return ProcessStdoutHash
}

// screenLane is the comparison of two Showings.
type screenLane struct {
	screenCompare
	c       *comparison
	found   []placed
	looked  int         // moments that were compared
	drawing int         // those that were not
	last    []rowChange // of the moment before
	told    []screenField
}

func (l *screenLane) run(a, b *Showing) {
	byTyped := make(map[int64]*Moment, len(b.Moments))
	for i := range b.Moments {
		if m := &b.Moments[i]; !m.End {
			byTyped[m.Typed] = m
		}
	}
	for i := range a.Moments {
		m := &a.Moments[i]
		switch other := byTyped[m.Typed]; {
		case m.End || other == nil:
		case m.Drawing:
			l.drawing++
		default:
			l.moment(m, other)
		}
	}
	endA, endB := endOf(a), endOf(b)
	if endA == nil || endB == nil {
		return
	}
	if endA.Typed != endB.Typed && !l.unread(a, endA, endB) {
		l.add(ScreenInput, fmt.Sprintf("%d bytes were typed, and %d in the %s", endA.Typed, endB.Typed, l.c.report.names.of(Replay)), endB, nil)
	}
	l.moment(endA, endB)
	l.history(a, b, endB)
}

// unread reports whether what was typed while recording, and was not on the replay, changed nothing: the program was about to end.
func (l *screenLane) unread(a *Showing, endA, endB *Moment) bool {
	i := slices.IndexFunc(a.Moments, func(m Moment) bool { return m.Typed >= endB.Typed })
	return i >= 0 && endA.Typed > endB.Typed && len(l.rows(&a.Moments[i].Screen, &endA.Screen)) == 0
}

func endOf(s *Showing) *Moment {
	if n := len(s.Moments); n > 0 && s.Moments[n-1].End {
		return &s.Moments[n-1]
	}
	return nil
}

// moment compares two screens. What differed in the same way a moment before is not told again.
func (l *screenLane) moment(a, b *Moment) {
	l.looked++
	rows := l.rows(&a.Screen, &b.Screen)
	fresh := slices.DeleteFunc(slices.Clone(rows), func(r rowChange) bool { return slices.Contains(l.last, r) })
	l.last = rows
	if len(fresh) > 0 {
		l.add(ScreenRows, fmt.Sprintf("the screen differs in %s, %s", counted(len(fresh), "row"), when(a)), b, changesOf(fresh, "row"))
	}
	fields := l.fields(&a.Screen, &b.Screen)
	for _, f := range fields {
		if !slices.Contains(l.told, f) {
			l.add(f.category, titleOf(f.category)+l.c.report.names.versus(f.was, f.now)+", "+when(a), b, nil)
		}
	}
	l.told = fields
}

// history compares what had left the screens by the end.
func (l *screenLane) history(a, b *Showing, end *Moment) {
	was, now := a.History, b.History
	if a.Lost > 0 || b.Lost > 0 { // the newest rows stand beside each other
		n := min(len(was), len(now))
		was, now = was[len(was)-n:], now[len(now)-n:]
	}
	row := func(of []string, i int) string {
		if i < len(of) {
			return of[i]
		}
		return ""
	}
	var changes []rowChange
	for i := range max(len(was), len(now)) {
		r := rowChange{i, row(was, i), row(now, i)}
		if len(changes) < shownRows && l.masks(r.was) != l.masks(r.now) {
			changes = append(changes, r)
		}
	}
	if len(changes) == 0 && len(was) == len(now) {
		return
	}
	l.add(ScreenHistory, fmt.Sprintf("what left the screen at its top differs%s",
		l.c.report.names.versus(counted(len(was), "row"), counted(len(now), "row"))), end, changesOf(changes, "line"))
}

func changesOf(rows []rowChange, what string) (out []Change) {
	for _, r := range rows {
		out = append(out, r.change(what))
	}
	return out
}

// when says which moment this is.
func when(m *Moment) string {
	if m.End {
		return "at the end"
	}
	return fmt.Sprintf("before %q was typed (at %.3f s)", m.Before, float64(m.TMS)/1000)
}

// add places a divergence behind what the replay had done by then.
func (l *screenLane) add(cat Category, message string, b *Moment, changes []Change) {
	at, ex := l.before(b)
	p := placed{at: at, Divergence: Divergence{
		Category: cat, Lane: laneTerminal, Message: message, Exchange: ex, Changes: changes[:min(len(changes), shownRows)],
	}}
	p.rest = changes[len(p.Changes):]
	p.MoreChanges = len(p.rest)
	p.evidence = evidenceOf(&p.Divergence, &finding{category: cat})
	l.found = append(l.found, p)
}

// before returns how far the replay had come at a moment, and the last exchange by then.
func (l *screenLane) before(m *Moment) (at int, exchange string) {
	var last *tape.Record
	for e := range l.c.sides[Replay].records(anything) {
		if !m.End && m.G != 0 && e.rec.G > m.G {
			continue
		}
		at = e.at
		if tape.ExchangeOf(e.rec.Kind) != nil {
			last = e.rec
		}
	}
	if last == nil {
		return at, ""
	}
	return at, fmt.Sprintf("the exchange before it: %s (%s seq %d)", describe(last.Kind), l.c.report.names.of(Replay), last.Seq)
}

// tell counts what was left out.
func (l *screenLane) tell() {
	if l.moving > 0 {
		l.c.report.Masked[AnimationMask] += l.moving
		l.c.note("%s compared without what moves in them while nothing is typed or answered (%s): %s",
			counted(l.moving, "row"), AnimationMask, strings.Join(l.names, " | "))
	}
	if l.drawing > 0 {
		l.c.note("screens not compared, for the program was still printing when the next key came: %d", l.drawing)
	}
}
