package vt

// control executes a C0 or C1 control.
func (s *Screen) control(c byte, _ int64, _ int) {
	if c == 0 || c == 0x7f {
		return
	}
	s.forget()
	switch c {
	case 0x07:
		s.tell(EventBell, "")
	case 0x08:
		s.backspace()
	case '\t':
		s.tab(1)
	case '\n', 0x0b, 0x0c:
		s.lineFeed()
	case '\r':
		s.pending = false
		s.x = s.lineStart()
	case 0x0e:
		s.sets.gl = 1
	case 0x0f:
		s.sets.gl = 0
	case 0x84: // IND
		s.index()
	case 0x85: // NEL
		s.nextLine()
	case 0x88: // HTS
		s.tabs[s.x] = true
	case 0x8d: // RI
		s.reverseIndex()
	case 0x8e: // SS2
		s.sets.single = 2
	case 0x8f: // SS3
		s.sets.single = 3
	}
}

func (s *Screen) tell(k EventKind, text string) {
	if s.o.Event != nil {
		s.o.Event(Event{Kind: k, Text: text})
	}
}

func (s *Screen) backspace() {
	if s.pending {
		s.pending = false
		if s.modes.dec[45] && s.autowrap {
			return // reverse wrap: the cursor stands behind the last column
		}
	}
	switch {
	case s.x > 0 && s.x != s.left:
		s.x--
	case s.x > 0 && s.x == s.left && !s.lrmm:
		s.x--
	case s.modes.dec[45] && s.autowrap && s.y > s.top && s.buf.rows[s.y-1].wrapped:
		s.y--
		s.x = s.right
	}
}

func (s *Screen) lineFeed() {
	s.seam(s.y)
	if s.newline {
		s.x = s.lineStart()
	}
	s.index()
}

func (s *Screen) index() {
	s.pending = false
	s.down()
}

// down moves the cursor down by one row, or scrolls at the bottom margin.
func (s *Screen) down() {
	switch {
	case s.y == s.bottom:
		if s.x >= s.left && s.x <= s.right {
			s.feedLines(1)
		}
	case s.y < s.rows-1:
		s.y++
	}
}

func (s *Screen) reverseIndex() {
	s.pending = false
	switch {
	case s.y == s.top:
		if s.x >= s.left && s.x <= s.right {
			s.scrollDown(s.top, 1)
		}
	case s.y > 0:
		s.y--
	}
}

func (s *Screen) nextLine() {
	s.x = s.lineStart()
	s.index()
}

// escape executes ESC, intermediates, final.
func (s *Screen) escape(m *machine, final byte) {
	if final == '\\' && m.inters == 0 {
		return // the end of ST
	}
	s.forget()
	if m.inters == 1 {
		s.escapeInter(m.inter[0], final)
		return
	}
	if m.inters > 0 {
		return
	}
	switch final {
	case '7':
		s.save()
	case '8':
		s.restore()
	case '=', '>': // DECKPAM, DECKPNM
		s.modes.dec[66] = final == '='
	case 'c':
		s.reset()
	case 'n', 'o': // LS2, LS3
		s.sets.gl = 2 + final - 'n'
	case '6': // DECBI
		s.backIndex()
	case '9': // DECFI
		s.forwardIndex()
	case 'D', 'E', 'H', 'M', 'N', 'O':
		s.control(final+0x40, 0, 0)
	}
}

func (s *Screen) escapeInter(inter, final byte) {
	switch inter {
	case '(', ')', '*', '+':
		s.sets.designate(int(inter-'('), final)
	case '-', '.', '/': // sets of 96
		s.sets.designate(int(inter-'-')+1, 'B')
	case '#':
		if final == '8' {
			s.align()
		}
	}
}

// align is DECALN.
func (s *Screen) align() {
	s.margins()
	s.x, s.y, s.pending, s.origin = 0, 0, false, false
	s.modes.dec[6] = false
	for _, l := range s.buf.rows {
		l.fill(cell{ch: 'E'}, Origin{})
		l.wrapped = false
		s.touch(l)
	}
}

// backIndex is DECBI: a column to the left, or the columns between the margins to the right.
func (s *Screen) backIndex() {
	s.pending = false
	switch {
	case s.x == s.left && s.y >= s.top && s.y <= s.bottom:
		s.shiftColumns(s.left, 1)
	case s.x > 0 && s.x != s.left:
		s.x--
	}
}

// forwardIndex is DECFI.
func (s *Screen) forwardIndex() {
	s.pending = false
	switch {
	case s.x == s.right && s.y >= s.top && s.y <= s.bottom:
		s.shiftColumns(s.left, -1)
	case s.x < s.cols-1 && s.x != s.right:
		s.x++
	}
}

// save is DECSC.
func (s *Screen) save() {
	s.buf.saved = saved{s.x, s.y, s.pending, s.pen, s.origin, s.sets}
}

// restore is DECRC.
func (s *Screen) restore() {
	v := &s.buf.saved
	s.pen, s.origin, s.sets = v.pen, v.origin, v.sets
	s.modes.dec[6] = s.origin
	s.x, s.y = min(v.x, s.cols-1), min(v.y, s.rows-1)
	if s.origin {
		s.x, s.y = min(max(s.x, s.left), s.right), min(max(s.y, s.top), s.bottom)
	}
	s.pending = v.pending && s.x == v.x
}
