package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

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
