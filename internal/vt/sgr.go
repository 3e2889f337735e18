package vt

import (
	"strconv"
	"strings"
)

// set is SGR, with colons and with semicolons.
func (p *pen) set(m *machine) {
	n := min(m.nparams, maxParams)
	if n == 0 {
		p.reset()
		return
	}
	for i := 0; i < n; {
		subs := 0
		for i+1+subs < n && m.params[i+1+subs].sub {
			subs++
		}
		i += p.attribute(m, i, subs, n)
	}
}

// reset is SGR 0: links and protection stay.
func (p *pen) reset() { *p = pen{protect: p.protect, more: p.more &^ 0xffffffff} }

// attribute takes parameter i with the parameters behind colons after it, and says how many it took.
func (p *pen) attribute(m *machine, i, subs, n int) int {
	v := m.raw(i, 0)
	took := 1 + subs
	switch {
	case v == 38 || v == 48 || v == 58:
		c, ok := colonColor(m, i+1, subs)
		if subs == 0 {
			c, took, ok = plainColor(m, i, n)
		}
		if !ok {
			return took
		}
		switch v {
		case 38:
			p.setFG(c)
		case 48:
			p.setBG(c)
		case 58:
			p.setUnderline(c)
		}
	case v == 4 && subs > 0:
		if style := m.raw(i+1, 1); style <= int(DashedUnderline) {
			p.under = Underline(style)
		}
	case v >= 30 && v <= 37:
		p.setFG(ColorIndexed | Color(v-30))
	case v >= 40 && v <= 47:
		p.setBG(ColorIndexed | Color(v-40))
	case v >= 90 && v <= 97:
		p.setFG(ColorIndexed | Color(v-90+8))
	case v >= 100 && v <= 107:
		p.setBG(ColorIndexed | Color(v-100+8))
	default:
		p.simple(v)
	}
	return took
}

func (p *pen) simple(v int) {
	switch v {
	case 0:
		p.reset()
	case 1:
		p.attr |= Bold
	case 2:
		p.attr |= Faint
	case 3:
		p.attr |= Italic
	case 4:
		p.under = SingleUnderline
	case 5, 6:
		p.attr |= Blink
	case 7:
		p.attr |= Reverse
	case 8:
		p.attr |= Hidden
	case 9:
		p.attr |= Strike
	case 21:
		p.under = DoubleUnderline
	case 22:
		p.attr &^= Bold | Faint
	case 23:
		p.attr &^= Italic
	case 24:
		p.under = NoUnderline
	case 25:
		p.attr &^= Blink
	case 27:
		p.attr &^= Reverse
	case 28:
		p.attr &^= Hidden
	case 29:
		p.attr &^= Strike
	case 39:
		p.setFG(ColorDefault)
	case 49:
		p.setBG(ColorDefault)
	case 53:
		p.attr |= Overline
	case 55:
		p.attr &^= Overline
	case 59:
		p.setUnderline(ColorDefault)
	}
}

func rgb(r, g, b int) Color { return ColorRGB | Color(r)<<16 | Color(g)<<8 | Color(b) }

// colonColor reads 2:r:g:b, 2:space:r:g:b and 5:n, from parameter i on.
func colonColor(m *machine, i, subs int) (Color, bool) {
	switch m.raw(i, -1) {
	case 2:
		at := i + 1
		if subs >= 5 {
			at++ // the colour space
		}
		if subs < 4 {
			return 0, false
		}
		return triple(m, at)
	case 5:
		if n := m.raw(i+1, -1); subs >= 2 && n >= 0 && n < 256 {
			return ColorIndexed | Color(n), true
		}
	}
	return 0, false
}

// plainColor reads 38;2;r;g;b and 38;5;n, from parameter i on, and says how many parameters those are.
func plainColor(m *machine, i, n int) (Color, int, bool) {
	switch m.raw(i+1, -1) {
	case 2:
		if i+4 >= n {
			return 0, n - i, false
		}
		c, ok := triple(m, i+2)
		return c, 5, ok
	case 5:
		if i+2 >= n {
			return 0, n - i, false
		}
		if v := m.raw(i+2, 0); v < 256 {
			return ColorIndexed | Color(v), 3, true
		}
		return 0, 3, false
	}
	return 0, 2, false
}

func triple(m *machine, i int) (Color, bool) {
	r, g, b := m.raw(i, 0), m.raw(i+1, 0), m.raw(i+2, 0)
	if r > 255 || g > 255 || b > 255 {
		return 0, false
	}
	return rgb(r, g, b), true
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
