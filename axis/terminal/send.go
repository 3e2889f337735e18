package terminal

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// replyKey names an answer of the screen.
const replyKey = "reply"

// ErrNotAsked is wrapped where something is sent that a terminal sends only to a program which asked for it, and this one did
// not: mouse reports, focus events.
var ErrNotAsked = errors.New("the program has not asked its terminal for it")

// Send sends bytes to the program, as they are. It waits for a program that does not read.
func (s *Session) Send(p []byte) error { return s.input(p, "") }

// Type types text, as a person would: the end of a line is Enter.
func (s *Session) Type(text string) error { return s.input([]byte(typed(text)), "") }

// typed is text as a keyboard gives it.
func typed(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\r"), "\n", "\r")
}

// Key presses keys by their names (see KeyBytes), one after the other. In the application modes of cursor keys (DECCKM) and
// of the keypad the program gets what it asked for.
func (s *Session) Key(names ...string) error {
	for _, name := range names {
		application, _ := s.Mode(1)
		p, err := KeyBytes(name, application)
		if err != nil {
			return err
		}
		if err := s.input(p, strings.ToLower(name)); err != nil {
			return err
		}
	}
	return nil
}

// Paste pastes text: between the marks of a bracketed paste where the program asked for them (mode 2004), and as if it were
// typed where not.
func (s *Session) Paste(text string) error {
	p := typed(text)
	if on, _ := s.Mode(2004); on {
		p = "\x1b[200~" + strings.ReplaceAll(p, "\x1b[201~", "") + "\x1b[201~"
	}
	return s.input([]byte(p), "paste")
}

// Focus tells the program that its terminal has got the focus, or lost it (mode 1004).
func (s *Session) Focus(in bool) error {
	if on, _ := s.Mode(1004); !on {
		return fmt.Errorf("focus events (mode 1004): %w", ErrNotAsked)
	}
	if in {
		return s.input([]byte("\x1b[I"), "focus-in")
	}
	return s.input([]byte("\x1b[O"), "focus-out")
}

// input sends bytes to the program once the keeper knows them.
func (s *Session) input(p []byte, key string) error {
	if len(p) == 0 {
		return nil
	}
	s.send.Lock()
	defer s.send.Unlock()
	if s.o.Keeper != nil {
		s.keep.Lock()
		if hidden := s.pty.NoEcho(); hidden != s.noEcho {
			s.noEcho = hidden
			s.kept(s.o.Keeper.NoEcho(hidden))
		}
		s.kept(s.o.Keeper.Input(p, key))
		for _, name := range s.pty.SignalsOf(p) { // which the terminal makes of it
			s.kept(s.o.Keeper.Signal(name))
		}
		s.keep.Unlock()
	}
	s.note()
	if s.feed != nil && key != replyKey {
		s.feed.noteSent()
	}
	if _, err := s.pty.Master.Write(p); err != nil {
		return fmt.Errorf("%s does not take what is typed: %w", s.o.Argv[0], err)
	}
	return nil
}

// reply is what the screen answers to a question of the program. It never waits.
func (s *Session) reply(p []byte) {
	select {
	case s.replies <- append([]byte(nil), p...):
	default:
	}
}

// answer sends the replies.
func (s *Session) answer() {
	for {
		select {
		case p := <-s.replies:
			s.input(p, replyKey) // a program that has ended needs none
		case <-s.done:
			return
		}
	}
}

// Resize gives the terminal another size, and its foreground group SIGWINCH.
func (s *Session) Resize(size Size) error {
	if err := size.check(); err != nil {
		return err
	}
	s.sizing.Lock()
	defer s.sizing.Unlock()
	if s.size == size {
		return s.signal(resizeSignal)
	}
	s.keep.Lock()
	if s.o.Keeper != nil {
		s.kept(s.o.Keeper.Resize(size))
	}
	if s.feed != nil {
		s.feed.resize(size)
	}
	s.keep.Unlock()
	s.size = size
	return s.pty.setSize(size)
}

// Signal sends a signal to the terminal's foreground group, as its keys do, or to the program's own where there is none.
func (s *Session) Signal(sig syscall.Signal) error {
	if s.o.Keeper != nil {
		s.keep.Lock()
		s.kept(s.o.Keeper.Signal(signalName(sig)))
		s.keep.Unlock()
	}
	return s.signal(sig)
}

// signal is Signal that nobody keeps.
func (s *Session) signal(sig syscall.Signal) error {
	if group := s.pty.foreground(); group > 1 && signalGroup(group, sig) == nil {
		return nil
	}
	return s.proc.Signal(sig)
}

// tell sends a signal to the foreground group and, where that is another, to the program's own, as the kernel does when a
// terminal goes.
func (s *Session) tell(sig syscall.Signal) {
	group := s.pty.foreground()
	if p, ok := s.proc.(interface{ Group() int }); group > 1 && (!ok || p.Group() != group) {
		signalGroup(group, sig)
	}
	s.proc.Signal(sig)
}

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
