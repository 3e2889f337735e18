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
