package vt

import (
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
