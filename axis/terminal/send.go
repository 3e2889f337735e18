package terminal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"
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

// cursorKeys end in a letter, whether in CSI or, with application cursor keys, in SS3.
var cursorKeys = map[string]byte{"up": 'A', "down": 'B', "right": 'C', "left": 'D', "home": 'H', "end": 'F'}

// tildeKeys are CSI, a number and ~.
var tildeKeys = map[string]int{
	"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6,
	"f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
	"f13": 25, "f14": 26, "f15": 28, "f16": 29, "f17": 31, "f18": 32, "f19": 33, "f20": 34,
}

// ss3Keys are SS3 and a letter, and with modifiers in CSI.
var ss3Keys = map[string]byte{"f1": 'P', "f2": 'Q', "f3": 'R', "f4": 'S'}

// byteKeys are one byte.
var byteKeys = map[string]byte{"enter": '\r', "tab": '\t', "escape": 0x1b, "space": ' ', "backspace": 0x7f}

// sameKeys are other names of keys.
var sameKeys = map[string]string{
	"return": "enter", "esc": "escape", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown",
	"pgdown": "pagedown", "page-up": "pageup", "page-down": "pagedown", "bs": "backspace", "backtab": "shift-tab",
}

// ctrlKeys are the characters that make another byte with Ctrl than their lower five bits.
var ctrlKeys = map[byte]byte{'?': 0x7f, '/': 0x1f, '-': 0x1f, '2': 0, '3': 0x1b, '4': 0x1c, '5': 0x1d, '6': 0x1e, '7': 0x1f, '8': 0x7f}

// The modifiers, as xterm adds them up.
const (
	shiftKey = 1 << iota
	altKey
	ctrlKey
)

// KeyBytes returns what a terminal sends for a key: a character ("x", "é"), or one of enter, tab, escape, space, backspace, up,
// down, left, right, home, end, insert, delete, pageup, pagedown, f1 to f20, each after any of "ctrl-", "alt-" and "shift-".
// Letters may be upper case in names of more than one character. application is the terminal's mode of cursor keys (DECCKM).
func KeyBytes(name string, application bool) ([]byte, error) {
	key, mods := splitKey(name)
	if b, ok := cursorKeys[key]; ok {
		if application && mods == 0 {
			return []byte{0x1b, 'O', b}, nil
		}
		return letterKey(b, mods, '['), nil
	}
	if b, ok := ss3Keys[key]; ok {
		return letterKey(b, mods, 'O'), nil
	}
	if n, ok := tildeKeys[key]; ok {
		if mods == 0 {
			return fmt.Appendf(nil, "\x1b[%d~", n), nil
		}
		return fmt.Appendf(nil, "\x1b[%d;%d~", n, mods+1), nil
	}
	if key == "tab" && mods&shiftKey != 0 {
		return withAlt("\x1b[Z", mods), nil
	}
	if b, ok := byteKeys[key]; ok {
		key, mods = string(rune(b)), mods&^shiftKey
		if b == 0x7f && mods&ctrlKey != 0 {
			key, mods = "\b", mods&^ctrlKey
		}
	}
	return charKey(name, key, mods)
}

// splitKey takes the modifiers off a key's name.
func splitKey(name string) (key string, mods int) {
	key = name
	if utf8.RuneCountInString(name) > 1 {
		key = lowerName(name)
	}
	for {
		if other, ok := sameKeys[key]; ok {
			key = other
		}
		before, after, found := strings.Cut(key, "-")
		mod, ok := map[string]int{"shift": shiftKey, "alt": altKey, "meta": altKey, "ctrl": ctrlKey, "control": ctrlKey}[before]
		if !found || !ok || after == "" {
			return key, mods
		}
		key, mods = after, mods|mod
	}
}

// lowerName is a name in lower case, but for a character at its end: alt-X is another key than alt-x.
func lowerName(name string) string {
	at := strings.LastIndexByte(name, '-') + 1
	if at == 0 || utf8.RuneCountInString(name[at:]) != 1 {
		return strings.ToLower(name)
	}
	return strings.ToLower(name[:at]) + name[at:]
}

// letterKey is CSI or SS3 with a letter.
func letterKey(b byte, mods int, introducer byte) []byte {
	if mods == 0 {
		return []byte{0x1b, introducer, b}
	}
	return append(strconv.AppendInt([]byte("\x1b[1;"), int64(mods+1), 10), b)
}

// withAlt is text after the Escape that Alt is.
func withAlt(text string, mods int) []byte {
	if mods&altKey != 0 {
		text = "\x1b" + text
	}
	return []byte(text)
}

// charKey is a character with modifiers.
func charKey(name, key string, mods int) ([]byte, error) {
	if utf8.RuneCountInString(key) != 1 {
		return nil, fmt.Errorf("no key has the name %q: want a character or enter, tab, escape, space, backspace, up, down, left, right, "+
			"home, end, insert, delete, pageup, pagedown, f1 to f20, after any of ctrl-, alt-, shift-", name)
	}
	if mods&shiftKey != 0 {
		key = strings.ToUpper(key)
	}
	if mods&ctrlKey == 0 {
		return withAlt(key, mods), nil
	}
	b, ok := ctrlByte(key[0])
	if !ok || len(key) != 1 {
		return nil, fmt.Errorf("a terminal has no key %q: with ctrl- go a to z, space, @ [ \\ ] ^ _ ? / and 2 to 8", name)
	}
	return withAlt(string([]byte{b}), mods), nil
}

// ctrlByte is the byte that a character makes with Ctrl.
func ctrlByte(c byte) (byte, bool) {
	if b, ok := ctrlKeys[c]; ok {
		return b, true
	}
	switch {
	case c >= 'a' && c <= 'z', c >= '@' && c <= '_', c == ' ':
		return c & 0x1f, true
	case c == '\r', c == '\t', c == 0x1b:
		return c, true
	}
	return 0, false
}

// keyNames are the names of what keys send, but for characters.
var keyNames = sync.OnceValue(func() map[string]string {
	plain := []string{"enter", "tab", "escape", "backspace", "shift-tab", "alt-enter", "alt-backspace", "ctrl-space"}
	cursor := slices.AppendSeq(slices.AppendSeq(slices.Collect(maps.Keys(cursorKeys)), maps.Keys(ss3Keys)), maps.Keys(tildeKeys))
	for c := 'a'; c <= 'z'; c++ {
		plain = append(plain, "ctrl-"+string(c), "alt-"+string(c))
	}
	for _, c := range `\]^_` {
		plain = append(plain, "ctrl-"+string(c))
	}
	out := make(map[string]string)
	add := func(name string) {
		for _, application := range []bool{false, true} {
			if p, err := KeyBytes(name, application); err == nil && out[string(p)] == "" {
				out[string(p)] = name
			}
		}
	}
	for _, name := range plain { // first: ctrl-m is enter
		add(name)
	}
	for _, mods := range []string{"", "shift-", "alt-", "ctrl-", "ctrl-shift-", "ctrl-alt-"} {
		for _, name := range cursor {
			if mods == "" || name != "f3" { // which is then what a terminal answers to where the cursor is
				add(mods + name)
			}
		}
	}
	return out
})

// longestKey is the most bytes that a key with a name sends.
const longestKey = 8

// KeyName returns the name of the key that sends p, "" where p is text, several keys, or none that has a name.
func KeyName(p []byte) string {
	if len(p) > longestKey {
		return ""
	}
	return keyNames()[string(p)]
}
