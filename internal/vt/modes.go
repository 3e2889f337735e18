package vt

import "maps"

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
