package vt

import (
	"maps"
	"strconv"
	"strings"
)

// Pixels of a cell, for programs that ask.
const (
	cellHeight = 16
	cellWidth  = 8
)

func (s *Screen) answer(text string) {
	if s.o.Reply != nil {
		s.o.Reply([]byte(text))
	}
}

func (s *Screen) answerCSI(prefix string, final string, params ...int) {
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = strconv.Itoa(p)
	}
	s.answer("\x1b[" + prefix + strings.Join(parts, ";") + final)
}

// answerOSC ends the answer as the question ended.
func (s *Screen) answerOSC(m *machine, text string) {
	end := "\x1b\\"
	if m.bell {
		end = "\a"
	}
	s.answer("\x1b]" + text + end)
}

// report answers queries without prefix and intermediates.
func (s *Screen) report(m *machine, final byte) {
	switch n := m.raw(0, 0); final {
	case 'c': // DA1: VT420 with selective erase, horizontal scrolling, colours, rectangles, clipboard
		if n == 0 {
			s.answer("\x1b[?64;6;21;22;28;52c")
		}
	case 'n':
		switch n {
		case 5:
			s.answer("\x1b[0n")
		case 6:
			s.answerCSI("", "R", s.relativeRow()+1, s.relativeCol()+1)
		}
	case 't':
		s.window(m, n)
	case 'x': // DECREQTPARM
		if n <= 1 {
			s.answerCSI("", "x", n+2, 1, 1, 128, 128, 1, 0)
		}
	}
}

// window is XTWINOPS.
func (s *Screen) window(m *machine, n int) {
	switch n {
	case 11:
		s.answer("\x1b[1t")
	case 13:
		s.answerCSI("", "t", 3, 0, 0)
	case 14, 15:
		s.answerCSI("", "t", n-10, s.rows*cellHeight, s.cols*cellWidth)
	case 16:
		s.answerCSI("", "t", 6, cellHeight, cellWidth)
	case 18, 19:
		s.answerCSI("", "t", n-10, s.rows, s.cols)
	case 22:
		if m.raw(1, 0) != 1 {
			if len(s.titles) == maxTitles {
				s.titles = s.titles[1:]
			}
			s.titles = append(s.titles, s.title)
		}
	case 23:
		if k := len(s.titles); k > 0 && m.raw(1, 0) != 1 {
			s.title, s.titles = s.titles[k-1], s.titles[:k-1]
			s.tell(EventTitle, s.title)
		}
	}
}

// extended executes sequences with a prefix or an intermediate.
func (s *Screen) extended(m *machine, which uint32) {
	switch which {
	case seq('?', 0, 'h'), seq('?', 0, 'l'):
		for i := range min(m.nparams, maxParams) {
			s.setDECMode(m.raw(i, 0), byte(which) == 'h')
		}
	case seq('?', 0, 'J'):
		s.eraseDisplay(m.raw(0, 0), s.eraseSelective)
	case seq('?', 0, 'K'):
		s.eraseLine(m.raw(0, 0), s.eraseSelective)
	case seq('?', 0, 's'):
		s.saveModes(m)
	case seq('?', 0, 'r'):
		s.restoreModes(m)
	case seq('>', 0, 'u'):
		s.keys().push(m.raw(0, 0))
	case seq('<', 0, 'u'):
		s.keys().pop(m.num(0, 1))
	case seq('=', 0, 'u'):
		s.keys().set(m.raw(0, 0), m.num(1, 1))
	case seq(0, '!', 'p'):
		s.soft()
	case seq(0, ' ', 'q'):
		if n := m.raw(0, 0); n <= 6 {
			s.shape = n
		}
	case seq(0, '"', 'q'):
		s.pen.protect = m.raw(0, 0) == 1
		s.protects = s.protects || s.pen.protect
	case seq(0, ' ', '@'), seq(0, ' ', 'A'):
		s.shift(m.num(0, 1), byte(which) == 'A')
	case seq(0, '\'', '}'), seq(0, '\'', '~'):
		if s.within() {
			n := m.num(0, 1)
			if byte(which) == '~' {
				n = -n
			}
			s.pending = false
			s.shiftColumns(s.x, n)
		}
	default:
		s.query(m, which)
		s.rectangle(m, which)
	}
}

// query answers what asks with a prefix or an intermediate.
func (s *Screen) query(m *machine, which uint32) {
	switch which {
	case seq('?', 0, 'n'):
		s.reportDEC(m.raw(0, 0))
	case seq('?', 0, 'u'):
		s.answerCSI("?", "u", int(s.keys().now))
	case seq('>', 0, 'c'):
		if m.raw(0, 0) == 0 {
			s.answer("\x1b[>41;" + strconv.Itoa(xtermPatch) + ";0c")
		}
	case seq('=', 0, 'c'):
		if m.raw(0, 0) == 0 {
			s.answer("\x1bP!|00000000\x1b\\")
		}
	case seq('>', 0, 'q'):
		if m.raw(0, 0) == 0 {
			s.answer("\x1bP>|" + Name + "(" + strconv.Itoa(Version) + ")\x1b\\")
		}
	case seq('?', '$', 'p'):
		s.reportMode(m.raw(0, 0), true)
	case seq(0, '$', 'p'):
		s.reportMode(m.raw(0, 0), false)
	}
}

// xtermPatch is the version of xterm that programs are told of: what came before it is here.
const xtermPatch = 388

// shift is SL and SR: all columns to the left or to the right.
func (s *Screen) shift(n int, right bool) {
	if s.y < s.top || s.y > s.bottom {
		return
	}
	if !right {
		n = -n
	}
	s.shiftColumns(s.left, n)
}

func (s *Screen) reportDEC(n int) {
	switch n {
	case 6:
		s.answerCSI("?", "R", s.relativeRow()+1, s.relativeCol()+1)
	case 15: // no printer
		s.answer("\x1b[?13n")
	case 25: // user keys are locked
		s.answer("\x1b[?21n")
	case 26: // the keyboard is north American
		s.answer("\x1b[?27;1;0;0n")
	case 53, 55: // no locator
		s.answer("\x1b[?53n")
	}
}

// reportMode is DECRQM.
func (s *Screen) reportMode(n int, dec bool) {
	prefix := ""
	if dec {
		prefix = "?"
	}
	state := 0
	if set, known := s.Mode(dec, n); known {
		state = 2
		if set {
			state = 1
		}
	}
	s.answerCSI(prefix, "$y", n, state)
}

// modes holds what DECSET, SM and their opposites set. Modes that are looked at all the time stand in the Screen too.
type modes struct {
	dec, ansi map[int]bool
	saved     map[int]bool // of XTSAVE
}

// firstDEC and firstANSI hold every mode that is known, and how it is set at first.
var firstDEC = map[int]bool{
	1: false, 3: false, 4: false, 5: false, 6: false, 7: true, 8: true, 9: false, 12: false, 25: true, 40: false, 45: false,
	47: false, 66: false, 67: false, 69: false, 1000: false, 1001: false, 1002: false, 1003: false, 1004: false, 1005: false,
	1006: false, 1007: false, 1015: false, 1016: false, 1034: false, 1035: false, 1036: false, 1039: false, 1042: false,
	1047: false, 1048: false, 1049: false, 2004: false, 2026: false, 2027: false,
}

var firstANSI = map[int]bool{2: false, 4: false, 12: true, 20: false}

func newModes() modes { return modes{maps.Clone(firstDEC), maps.Clone(firstANSI), map[int]bool{}} }

func (m *modes) soft() {
	for _, n := range []int{1, 6, 66, 69} {
		m.dec[n] = false
	}
	m.dec[25], m.dec[7] = true, true
	m.ansi[2], m.ansi[4] = false, false
}

// Mode is how a mode is set, of DEC or of ANSI. A mode that is not known is never set.
func (s *Screen) Mode(dec bool, n int) (set, known bool) {
	if dec {
		set, known = s.modes.dec[n]
		return set, known
	}
	set, known = s.modes.ansi[n]
	return set, known
}

func (s *Screen) setMode(n int, on bool) {
	if _, known := s.modes.ansi[n]; !known {
		return
	}
	s.modes.ansi[n] = on
	switch n {
	case 4:
		s.insert = on
	case 20:
		s.newline = on
	}
}

func (s *Screen) setDECMode(n int, on bool) {
	if _, known := s.modes.dec[n]; !known {
		return
	}
	s.modes.dec[n] = on
	switch n {
	case 6:
		s.origin = on
		s.to(0, 0)
	case 7:
		s.autowrap = on
	case 9, 1000, 1001, 1002, 1003: // one protocol of the mouse at a time
		for _, other := range []int{9, 1000, 1001, 1002, 1003} {
			s.modes.dec[other] = on && other == n
		}
	case 1005, 1006, 1015, 1016: // and one encoding
		for _, other := range []int{1005, 1006, 1015, 1016} {
			s.modes.dec[other] = on && other == n
		}
	case 25:
		s.visible = on
	case 69:
		s.lrmm = on
		s.left, s.right = 0, s.cols-1
	case 47, 1047, 1049:
		s.alternateMode(n, on)
	case 1048:
		if on {
			s.save()
		} else {
			s.restore()
		}
	case 2027:
		s.emojiWide = on
	}
}

// alternateMode changes to the alternate screen and back.
func (s *Screen) alternateMode(n int, on bool) {
	for _, other := range []int{47, 1047, 1049} {
		s.modes.dec[other] = on
	}
	if on == s.Alt() {
		if !on && n == 1049 {
			s.restore()
		}
		return
	}
	s.gen++
	if on {
		if n == 1049 {
			s.save()
		}
		s.open(&s.alternate)
		s.buf = &s.alternate
		if n == 1049 {
			s.clearRows()
		}
		return
	}
	if n == 1047 {
		s.clearRows()
	}
	s.buf = &s.primary
	if n == 1049 {
		s.restore()
	}
}

// clearRows makes every row blank.
func (s *Screen) clearRows() {
	st := s.erased()
	for _, l := range s.buf.rows {
		s.blank(l, st)
	}
}

// saveModes is XTSAVE, restoreModes XTRESTORE.
func (s *Screen) saveModes(m *machine) {
	for i := range m.nparams {
		if set, known := s.modes.dec[m.raw(i, 0)]; known {
			s.modes.saved[m.raw(i, 0)] = set
		}
	}
}

func (s *Screen) restoreModes(m *machine) {
	for i := range m.nparams {
		if set, known := s.modes.saved[m.raw(i, 0)]; known {
			s.setDECMode(m.raw(i, 0), set)
		}
	}
}

// kittyFlags is the stack of the kitty keyboard protocol.
type kittyFlags struct {
	stack [8]uint8
	n     int
	now   uint8
}

func (k *kittyFlags) push(flags int) {
	if k.n == len(k.stack) {
		copy(k.stack[:], k.stack[1:])
		k.n--
	}
	k.stack[k.n] = k.now
	k.n++
	k.now = uint8(flags & 31)
}

func (k *kittyFlags) pop(n int) {
	for ; n > 0; n-- {
		if k.n == 0 {
			k.now = 0
			return
		}
		k.n--
		k.now = k.stack[k.n]
	}
}

func (k *kittyFlags) set(flags, how int) {
	f := uint8(flags & 31)
	switch how {
	case 1:
		k.now = f
	case 2:
		k.now |= f
	case 3:
		k.now &^= f
	}
}

func (s *Screen) keys() *kittyFlags {
	if s.Alt() {
		return &s.kitty[1]
	}
	return &s.kitty[0]
}
