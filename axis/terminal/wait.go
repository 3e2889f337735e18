package terminal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// An Until is something that WaitFor waits for. It is made by Text, Regexp, Gone, When, Settled and Exited.
type Until struct {
	name    string
	shown   func(v *view) bool // nil for none
	settled time.Duration      // 0 for none
	exited  bool
}

// String says what is waited for, as an error says it.
func (u Until) String() string { return u.name }

// Text waits until text stands on the screen, or has scrolled off it since something was last sent to the program. Rows that
// wrapped are joined. Blanks at the ends of lines do not count.
func Text(text string) Until {
	cut := trimLines(text)
	return Until{name: fmt.Sprintf("the text %q", text), shown: func(v *view) bool { return strings.Contains(v.text(), cut) }}
}

// trimLines is text without blanks at the ends of its lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// Regexp waits until what stands on the screen or has scrolled off it, as for Text, matches. Rows are lines, without the blanks
// at their ends.
func Regexp(re *regexp.Regexp) Until {
	return Until{name: fmt.Sprintf("a match of %q", re), shown: func(v *view) bool { return re.MatchString(v.text()) }}
}

// Gone waits until text does not stand on the screen.
func Gone(text string) Until {
	cut := trimLines(text)
	return Until{name: fmt.Sprintf("the text %q to go", text), shown: func(v *view) bool { return !strings.Contains(v.now(), cut) }}
}

// When waits until is returns true for the screen. name says in an error what was waited for.
func When(name string, is func(*Screen) bool) Until {
	return Until{name: name, shown: func(v *view) bool { return is(v.f.snapshot()) }}
}

// Settled waits until the program has been quiet for so long, counted from when something was last sent to it, at the earliest
// from the beginning of the wait, and the screen is whole: no control sequence and no synchronised output (mode 2026) is open.
// What has been open and quiet for a second is not waited for.
func Settled(quiet time.Duration) Until {
	return Until{name: fmt.Sprintf("a screen that rests for %v", quiet), settled: max(quiet, 1)}
}

// Exited waits for the program's end.
func Exited() Until { return Until{name: "the program's end", exited: true} }

// A TimeoutError is returned when what was waited for did not come in time.
type TimeoutError struct {
	Awaited []string // what would have ended the wait
	Waited  time.Duration
	Screen  *Screen // as it stood
	Err     error   // the context's
}

// Error says what was awaited and shows the screen.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("waited %v for %s: %v\n%v", e.Waited.Round(time.Millisecond), strings.Join(e.Awaited, " or "), e.Err, e.Screen)
}

// Unwrap returns the context's error.
func (e *TimeoutError) Unwrap() error { return e.Err }

// An EndedError is returned when the program ended and what was waited for cannot come any more.
type EndedError struct {
	Awaited []string
	Exit    Exit
	Screen  *Screen // as it was left
}

// Error says what was awaited and shows the screen.
func (e *EndedError) Error() string {
	return fmt.Sprintf("the program ended with status %d while %s was awaited\n%v", e.Exit.Code, strings.Join(e.Awaited, " or "), e.Screen)
}

// WaitFor waits for any of what is given, and returns which of them came, and the screen at that moment. Without a deadline of
// ctx it waits for SessionOptions.Patience. The error is a *TimeoutError, an *EndedError, ErrNoScreen, or that of the session.
func (s *Session) WaitFor(ctx context.Context, any ...Until) (int, *Screen, error) {
	if len(any) == 0 {
		return -1, nil, errors.New("nothing to wait for")
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.o.Patience)
		defer cancel()
	}
	if s.feed == nil {
		return s.waitBlind(ctx, any)
	}
	w := &waiter{s: s, any: any, begun: time.Now(), v: newView(s.feed)}
	return w.wait(ctx)
}

// waitBlind waits without a screen.
func (s *Session) waitBlind(ctx context.Context, any []Until) (int, *Screen, error) {
	for i, u := range any {
		if !u.exited {
			return -1, nil, fmt.Errorf("%v: %w", u, ErrNoScreen)
		}
		if _, err := s.Wait(ctx); err != nil && ctx.Err() == nil {
			return i, s.Screen(), err
		}
	}
	if err := ctx.Err(); err != nil {
		return -1, nil, &TimeoutError{Awaited: names(any), Screen: s.Screen(), Err: err}
	}
	return 0, s.Screen(), nil
}

// A waiter is one WaitFor.
type waiter struct {
	s     *Session
	any   []Until
	v     *view
	begun time.Time
}

func (w *waiter) wait(ctx context.Context) (int, *Screen, error) {
	f := w.s.feed
	for {
		f.mu.Lock()
		whole, changed := f.whole, f.changed
		came, again := w.look()
		var screen *Screen
		if came >= 0 || whole || ctx.Err() != nil {
			screen = f.snapshot()
		}
		f.mu.Unlock()
		switch {
		case came >= 0:
			return came, screen, nil
		case whole:
			return w.ended(screen)
		case ctx.Err() != nil:
			return -1, nil, &TimeoutError{Awaited: names(w.any), Waited: time.Since(w.begun), Screen: screen, Err: ctx.Err()}
		}
		w.sleep(ctx, changed, again)
	}
}

// ended is what a wait for something else comes to when all is over.
func (w *waiter) ended(screen *Screen) (int, *Screen, error) {
	<-w.s.done
	for i, u := range w.any {
		if u.exited {
			return i, screen, w.s.err
		}
	}
	return -1, nil, &EndedError{Awaited: names(w.any), Exit: w.s.exit, Screen: screen}
}

// look returns which has come, or -1, and after what time to look again; the feed's mu is held.
func (w *waiter) look() (came int, again time.Duration) {
	w.v.refresh()
	again = -1
	for i, u := range w.any {
		switch {
		case u.shown != nil && u.shown(w.v):
			return i, 0
		case u.settled > 0:
			left := w.unsettled(u.settled)
			if left <= 0 {
				return i, 0
			}
			if again < 0 || left < again {
				again = left
			}
		}
	}
	return -1, again
}

// openMost is for how long a sequence, or synchronised output, that was begun and not ended is waited for.
const openMost = time.Second

// unsettled is how much longer the screen must rest.
func (w *waiter) unsettled(quiet time.Duration) time.Duration {
	f := w.s.feed
	rested := min(w.s.sinceRead(), time.Since(w.begun))
	if f.fed+f.backlog.lost() < w.s.read.Load() || w.s.busy.Load() {
		return quiet // the screen is behind
	}
	if synchronised, _ := f.screen.Mode(true, 2026); synchronised || !f.screen.Ground() {
		quiet = max(quiet, openMost)
	}
	return quiet - rested
}

func (w *waiter) sleep(ctx context.Context, changed <-chan struct{}, again time.Duration) {
	var timer <-chan time.Time
	if again > 0 {
		timer = time.After(again)
	}
	select {
	case <-changed:
	case <-timer:
	case <-ctx.Done():
	}
}

func names(any []Until) (out []string) {
	for _, u := range any {
		out = append(out, u.name)
	}
	return out
}

// A view is what one wait sees of the screen.
type view struct {
	f    *feed
	from uint64 // of the lines that were scrolled off, how many were looked at

	gen   uint64
	fresh bool   // rows are those of gen
	rows  string // what stands on the screen
	above string // what was scrolled off between the last look and this one
}

// newView sees the screen, and what has scrolled off it since something was sent to the program last.
func newView(f *feed) *view {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &view{f: f, from: f.sent}
}

// refresh looks at the screen as it is now; the feed's mu is held.
func (v *view) refresh() {
	sc := v.f.screen
	if gen := sc.Generation(); gen != v.gen {
		v.gen, v.fresh = gen, false
	}
	kept := sc.ScrollbackLen()
	first := kept - int(min(sc.Scrolled()-v.from, uint64(kept)))
	v.from = sc.Scrolled()
	if v.above = ""; first == kept {
		return
	}
	rows := make([]string, 0, kept-first)
	for i := first; i < kept; i++ {
		rows = append(rows, sc.ScrollbackRow(i))
	}
	_, cols := sc.Size()
	v.above = joinRows(rows, func(i int) bool { return sc.ScrollbackWrapped(first + i) }, cols)
}

// now is what stands on the screen.
func (v *view) now() string {
	if !v.fresh {
		sc := v.f.screen
		_, cols := sc.Size()
		v.rows, v.fresh = joinRows(sc.Text(), sc.Wrapped, cols), true
	}
	return v.rows
}

// text is that below what was scrolled off.
func (v *view) text() string {
	if v.above == "" {
		return v.now()
	}
	return v.above + "\n" + v.now()
}

// Of what a Screen consists.
type (
	// A Cell is one place of the screen: a character, its width, how it is drawn.
	Cell = vt.Cell
	// A Style is how a Cell is drawn.
	Style = vt.Style
	// A Cursor is where the next character goes, counted from 0.
	Cursor = vt.Cursor
)

// A Screen is what stood on a session's terminal at one moment.
type Screen struct {
	Size   Size
	Rows   []string // of the screen, from the top, without trailing blanks; a wide character stands once
	Cells  [][]Cell // by row and column
	Cursor Cursor
	Title  string
	Alt    bool // it is the alternate screen
	// Above is what was scrolled off, the oldest first.
	Above []string
	// Skipped is how many bytes the screen has not seen, for there were too many: what stands there may not be what a
	// terminal would show.
	Skipped int64

	wrapped []bool // of Rows
}

// Screen is what stands on the terminal, as of all that was read by now. A Blind session has an empty one.
func (s *Session) Screen() *Screen {
	if s.feed == nil {
		return &Screen{Size: s.Size()}
	}
	s.feed.catchUp(s.read.Load())
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.feed.snapshot()
}

// snapshot is the screen now; mu is held.
func (f *feed) snapshot() *Screen {
	rows, cols := f.screen.Size()
	out := &Screen{
		Size: Size{Rows: rows, Cols: cols}, Cursor: f.screen.Cursor(), Title: f.screen.Title(), Alt: f.screen.Alt(),
		Rows: f.screen.Text(), Cells: make([][]Cell, rows), wrapped: make([]bool, rows), Skipped: f.backlog.lost(),
	}
	for i := range rows {
		out.Cells[i] = f.screen.AppendCells(make([]Cell, 0, cols), i)
		out.wrapped[i] = f.screen.Wrapped(i)
	}
	for i := range f.screen.ScrollbackLen() {
		out.Above = append(out.Above, f.screen.ScrollbackRow(i))
	}
	return out
}

// Row is one row, counted from 0, or "" where there is none.
func (s *Screen) Row(i int) string {
	if i < 0 || i >= len(s.Rows) {
		return ""
	}
	return s.Rows[i]
}

// Text is all rows, those at the bottom that are blank left out. A row that a program let wrap is joined with the next.
func (s *Screen) Text() string {
	return joinRows(s.Rows, func(i int) bool { return s.wrapped[i] }, s.Size.Cols)
}

// Contains reports whether text stands on the screen.
func (s *Screen) Contains(text string) bool { return strings.Contains(s.Text(), trimLines(text)) }

// Find returns where text stands first in a row: the row and the column of its first character.
func (s *Screen) Find(text string) (row, col int, found bool) {
	for i, r := range s.Rows {
		if at := strings.Index(r, text); at >= 0 {
			return i, vt.StringWidth(r[:at]), true
		}
	}
	return 0, 0, false
}

// String is the screen as a person reads it in a test's failure: its size, its title, where the cursor is, each row up to the
// last that is not blank.
func (s *Screen) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "screen of %d by %d", s.Size.Rows, s.Size.Cols)
	if s.Alt {
		b.WriteString(", the alternate one")
	}
	if s.Title != "" {
		fmt.Fprintf(&b, ", title %q", s.Title)
	}
	fmt.Fprintf(&b, ", cursor at row %d, column %d", s.Cursor.Row, s.Cursor.Col)
	if !s.Cursor.Visible {
		b.WriteString(", hidden")
	}
	if s.Skipped > 0 {
		fmt.Fprintf(&b, ", %d bytes were not seen", s.Skipped)
	}
	last := len(s.Rows) - 1
	for last >= 0 && s.Rows[last] == "" {
		last--
	}
	for i, r := range s.Rows[:last+1] {
		fmt.Fprintf(&b, "\n%3d | %s", i, r)
	}
	if last < 0 {
		b.WriteString("\n    (blank)")
	}
	return b.String()
}

// joinRows joins rows by newlines, but for those that go on in the next.
func joinRows(rows []string, wrapped func(int) bool, cols int) string {
	var b strings.Builder
	for i, r := range rows {
		b.WriteString(r)
		switch {
		case i == len(rows)-1:
		case wrapped(i):
			b.WriteString(strings.Repeat(" ", max(0, cols-vt.StringWidth(r)-1))) // blanks at the end of a full row; a wide character leaves one
		default:
			b.WriteByte('\n')
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// Lines are the rows, from the top. With CursorAt and CellsOf it makes a Screen what golden screens of cassette/check are held
// against.
func (s *Screen) Lines() []string { return slices.Clone(s.Rows) }

// CursorAt is where the cursor is, counted from 0, and whether it shows.
func (s *Screen) CursorAt() (row, col int, visible bool) {
	return s.Cursor.Row, s.Cursor.Col, s.Cursor.Visible
}

// CellsOf are the cells of a row, none where there is no such row.
func (s *Screen) CellsOf(row int) []Cell {
	if row < 0 || row >= len(s.Cells) {
		return nil
	}
	return s.Cells[row]
}
