package vt

import (
	"strconv"
	"strings"
)

// dcs executes a device control string: DECRQSS and XTGETTCAP.
func (s *Screen) dcs(m *machine) {
	if m.inters != 1 || m.final != 'q' {
		return
	}
	switch m.inter[0] {
	case '$':
		if v, ok := s.setting(string(m.data)); ok {
			s.answer("\x1bP1$r" + v + string(m.data) + "\x1b\\")
		} else {
			s.answer("\x1bP0$r\x1b\\")
		}
	case '+': // no capability is known by name
		s.answer("\x1bP0+r\x1b\\")
	}
}

// setting is what DECRQSS asks for, without the end of the sequence that would set it.
func (s *Screen) setting(name string) (string, bool) {
	pair := func(a, b int) string { return strconv.Itoa(a+1) + ";" + strconv.Itoa(b+1) }
	switch name {
	case "m":
		return s.pen.sgr(), true
	case "r":
		return pair(s.top, s.bottom), true
	case "s":
		return pair(s.left, s.right), true
	case "t", "*|":
		return strconv.Itoa(s.rows), true
	case "$|":
		return strconv.Itoa(s.cols), true
	case " q":
		return strconv.Itoa(s.shape), true
	case `"p`:
		return "64;1", true
	case `"q`:
		if s.pen.protect {
			return "1", true
		}
		return "0", true
	}
	return "", false
}

// sgr is the parameters of SGR that set the pen from a plain one.
func (p *pen) sgr() string {
	var out []string
	for i, code := range []string{"1", "2", "3", "5", "7", "8", "9", "53"} {
		if p.attr&(1<<i) != 0 {
			out = append(out, code)
		}
	}
	switch {
	case p.under == SingleUnderline:
		out = append(out, "4")
	case p.under == DoubleUnderline:
		out = append(out, "21")
	case p.under != NoUnderline:
		out = append(out, "4:"+strconv.Itoa(int(p.under)))
	}
	st := p.style()
	out = append(out, colorSGR(st.FG, 30), colorSGR(st.BG, 40), colorSGR(st.UnderlineColor, 50))
	out = nonEmpty(out)
	if len(out) == 0 {
		return "0"
	}
	return strings.Join(out, ";")
}

func nonEmpty(list []string) []string {
	kept := list[:0]
	for _, v := range list {
		if v != "" {
			kept = append(kept, v)
		}
	}
	return kept
}

// colorSGR is a colour as SGR has it; base is 30, 40 or 50.
func colorSGR(c Color, base int) string {
	n := int(c & 0xff)
	switch {
	case c == ColorDefault:
		return ""
	case c&ColorRGB != 0:
		r, g, b := split(c)
		return strconv.Itoa(base+8) + ":2::" + strconv.Itoa(int(r)) + ":" + strconv.Itoa(int(g)) + ":" + strconv.Itoa(int(b))
	case n < 8 && base < 50:
		return strconv.Itoa(base + n)
	case n < 16 && base < 50:
		return strconv.Itoa(base + 60 + n - 8)
	}
	return strconv.Itoa(base+8) + ":5:" + strconv.Itoa(n)
}
