package vt

// control executes a C0 or C1 control.
func (s *Screen) control(c byte, _ int64, _ int) {
	if c == 0 || c == 0x7f {
		return
	}
	s.forget()
	switch c {
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

const (
	setASCII charset = iota
	setDrawing
	setUK
)

// csi executes a control sequence.
func (s *Screen) csi(m *machine, final byte) {
	if final == 'm' && m.prefix == 0 && m.inters == 0 {
		s.pen.set(m)
		s.forget()
		return
	}
	if final == 'b' && m.prefix == 0 && m.inters == 0 {
		s.repeat(m.num(0, 1))
		return
	}
	s.forget()
	if m.inters > 1 {
		return
	}
	if m.prefix == 0 && m.inters == 0 {
		if !s.move(m, final) {
			s.edit(m, final)
		}
		return
	}
	s.extended(m, seq(m.prefix, m.inter[0], final))
}

// move executes what moves the cursor.
func (s *Screen) move(m *machine, final byte) bool {
	n := m.num(0, 1)
	switch final {
	case 'A':
		s.up(n)
	case 'B':
		s.downBy(n)
	case 'C':
		s.rightBy(n)
	case 'D':
		s.leftBy(n)
	case 'E':
		s.downBy(n)
		s.x = s.lineStart()
	case 'F':
		s.up(n)
		s.x = s.lineStart()
	case 'G', '`':
		s.to(s.relativeRow(), n-1)
	case 'H', 'f':
		s.to(n-1, m.num(1, 1)-1)
	case 'd':
		s.to(n-1, s.relativeCol())
	case 'a': // unlike CUF and CUD, HPR and VPR stop at the edge of the screen alone
		s.to(s.relativeRow(), s.relativeCol()+n)
	case 'e':
		s.to(s.relativeRow()+n, s.relativeCol())
	case 'I':
		s.tab(n)
	case 'Z':
		s.backTab(n)
	default:
		return false
	}
	return true
}

// edit executes the other sequences without prefix and intermediates.
func (s *Screen) edit(m *machine, final byte) {
	n := m.num(0, 1)
	switch final {
	case '@':
		s.pending = false
		s.insertCells(n)
	case 'P':
		s.pending = false
		s.deleteCells(n)
	case 'X':
		s.pending = false
		s.erase(s.y, s.x, min(s.x+n, s.cols))
	case 'J':
		s.eraseDisplay(m.raw(0, 0), s.erase)
	case 'K':
		s.eraseLine(m.raw(0, 0), s.erase)
	case 'L':
		s.insertLines(n)
	case 'M':
		s.deleteLines(n)
	case 'S':
		s.scrollUp(s.top, n)
	case 'T':
		if m.nparams <= 1 {
			s.scrollDown(s.top, n)
		}
	case '^':
		s.scrollDown(s.top, n)
	case 'g':
		s.clearTabs(m.raw(0, 0))
	case 'h', 'l':
		for i := range max(m.nparams, 1) {
			s.setMode(m.raw(i, 0), final == 'h')
		}
	case 'r':
		s.setRows(m.num(0, 1)-1, m.num(1, s.rows)-1)
	case 's':
		if s.lrmm {
			s.setColumns(m.num(0, 1)-1, m.num(1, s.cols)-1)
		} else { // SCOSC; unlike DECSC it does not keep that the next character wraps
			s.save()
			s.buf.saved.pending = false
		}
	case 'u':
		s.restore()
	case 'c', 'n', 't', 'x':
		s.report(m, final)
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

// rectangle executes DECERA, DECSERA, DECFRA and DECCRA.
func (s *Screen) rectangle(m *machine, which uint32) {
	switch which {
	case seq(0, '$', 'z'):
		if r, ok := s.area(m, 0); ok {
			s.each(r, s.erase)
		}
	case seq(0, '$', '{'):
		if r, ok := s.area(m, 0); ok {
			s.each(r, s.eraseSelective)
		}
	case seq(0, '$', 'x'):
		if r, ok := s.area(m, 1); ok {
			s.fill(r, m.raw(0, 0))
		}
	case seq(0, '$', 'v'):
		if r, ok := s.area(m, 0); ok {
			s.copyArea(r, m.num(5, 1)-1, m.num(6, 1)-1)
		}
	}
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

// charset is a character set of 94 characters that ASCII is replaced by.
type charset uint8

// charsets is what SCS, the shifts and the single shifts designate.
type charsets struct {
	g      [4]charset
	gl     uint8
	single uint8 // of SS2 and SS3, for one character
}

func (c *charsets) translate(r rune) rune {
	set := c.g[c.gl]
	if c.single > 0 {
		set, c.single = c.g[c.single], 0
	}
	switch {
	case set == setDrawing && r >= 0x60 && r <= 0x7e:
		return drawing[r-0x60]
	case set == setUK && r == '#':
		return '£'
	}
	return r
}

// designate is SCS: final says which set G0…G3 gets.
func (c *charsets) designate(g int, final byte) {
	switch final {
	case '0', '2':
		c.g[g] = setDrawing
	case 'A':
		c.g[g] = setUK
	default:
		c.g[g] = setASCII
	}
}

// drawing is DEC special graphics, from 0x60 on; 0x5f stays an underscore, as other terminals have it.
var drawing = []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
