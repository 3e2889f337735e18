package terminal

import "fmt"

// A Button is a button of a mouse, or its wheel.
type Button uint8

// The buttons. None is for movement without one.
const (
	Left Button = iota
	Middle
	Right
	None
	WheelUp   = 64
	WheelDown = 65
)

// An Action is what a mouse did.
type Action uint8

// The actions.
const (
	Press Action = iota
	Release
	Move
)

// A Mouse is what a mouse did, at a place of the screen that is counted from 0.
type Mouse struct {
	Button           Button
	Action           Action
	Row, Col         int
	Shift, Alt, Ctrl bool
}

// The private modes of mouse reports.
const (
	mouseX10     = 9    // presses
	mouseButtons = 1000 // and releases
	mouseDrag    = 1002 // and movement with a button
	mouseMotion  = 1003 // and all movement
	mouseSGR     = 1006 // as numbers; without, as bytes
)

// x10Most is the highest row and column that a report in bytes can tell.
const x10Most = 222

// Mouse reports what a mouse did, in the form that the program asked for: as numbers (mode 1006), or as bytes. What it did not
// ask for wraps ErrNotAsked, and a place that the form cannot tell is an error.
func (s *Session) Mouse(m Mouse) error {
	on := func(n int) bool { set, _ := s.Mode(n); return set }
	asked := on(mouseMotion) ||
		m.Action != Move && (on(mouseButtons) || on(mouseDrag)) ||
		m.Action == Move && m.Button != None && on(mouseDrag) ||
		m.Action == Press && on(mouseX10)
	if !asked {
		return fmt.Errorf("mouse reports (modes 9, 1000, 1002, 1003): %w", ErrNotAsked)
	}
	if size := s.Size(); m.Row < 0 || m.Col < 0 || m.Row >= size.Rows || m.Col >= size.Cols {
		return fmt.Errorf("mouse at row %d, column %d of a terminal of %d by %d", m.Row, m.Col, size.Rows, size.Cols)
	}
	if on(mouseSGR) {
		final := 'M'
		if m.Action == Release {
			final = 'm'
		}
		return s.input(fmt.Appendf(nil, "\x1b[<%d;%d;%d%c", m.code(), m.Col+1, m.Row+1, final), "mouse")
	}
	if m.Row > x10Most || m.Col > x10Most {
		return fmt.Errorf("mouse at row %d, column %d: the program asked for reports in bytes, which end at %d", m.Row, m.Col, x10Most)
	}
	if m.Action == Release {
		m.Button = None // which one, the form does not tell
	}
	return s.input([]byte{0x1b, '[', 'M', byte(32 + m.code()), byte(33 + m.Col), byte(33 + m.Row)}, "mouse")
}

// code is the button with the modifiers.
func (m Mouse) code() int {
	code := int(m.Button)
	for bit, on := range map[int]bool{4: m.Shift, 8: m.Alt, 16: m.Ctrl, 32: m.Action == Move} {
		if on {
			code += bit
		}
	}
	return code
}

// Click presses the left button and releases it.
func (s *Session) Click(row, col int) error {
	for _, a := range []Action{Press, Release} {
		if err := s.Mouse(Mouse{Action: a, Row: row, Col: col}); err != nil {
			return err
		}
	}
	return nil
}
