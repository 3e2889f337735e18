package terminal

import "slices"

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
