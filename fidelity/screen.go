package fidelity

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
