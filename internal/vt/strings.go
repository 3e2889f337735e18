package vt

import (
	"encoding/base64"
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

const (
	maxTitle  = 1 << 16 // bytes of a title
	maxTitles = 10      // of the stack
	maxLink   = 2083    // bytes of a link, as other terminals have it
)

// str executes a control string.
func (s *Screen) str(m *machine, kind strKind) {
	s.forget()
	switch kind {
	case strOSC:
		s.osc(m, text(m.data))
	case strDCS:
		s.dcs(m)
	}
}

// text is what a control string says: without C0 controls, and with U+FFFD for what is not UTF-8.
func text(data []byte) string {
	var d decoder
	var b strings.Builder
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case d.n == 0 && c < 0x80:
			if c >= 0x20 && c != 0x7f {
				b.WriteByte(c)
			}
			i++
		default:
			r, n, ok := d.decode(data[i:])
			if ok {
				b.WriteRune(r)
			}
			i += n
		}
	}
	if d.n > 0 {
		b.WriteRune('\ufffd')
	}
	return b.String()
}

func (s *Screen) osc(m *machine, data string) {
	number, rest, _ := strings.Cut(data, ";")
	switch number {
	case "0", "2":
		if len(rest) > maxTitle {
			rest = strings.ToValidUTF8(rest[:maxTitle], "")
		}
		s.title = rest
		s.tell(EventTitle, rest)
	case "4":
		s.setPalette(m, rest)
	case "104":
		s.resetPalette(rest)
	case "8":
		s.hyperlink(rest)
	case "10", "11", "12":
		s.setSpecial(m, int(number[1]-'0'), rest)
	case "110", "111", "112":
		s.palette.special[number[2]-'0'] = 0
	case "52":
		s.clipboard(rest)
	}
}

func (s *Screen) hyperlink(rest string) {
	params, uri, _ := strings.Cut(rest, ";")
	if uri == "" || len(rest) > maxLink {
		s.pen.setLink(0)
		return
	}
	id := ""
	for _, p := range strings.Split(params, ":") {
		if v, ok := strings.CutPrefix(p, "id="); ok {
			id = v
		}
	}
	if s.links.full() {
		s.collect()
	}
	s.pen.setLink(s.links.put([]byte(id + ";" + uri)))
}

// linkURI is the address of a link as it is interned: id, semicolon, address.
func linkURI(link string) string {
	_, uri, _ := strings.Cut(link, ";")
	return uri
}

func (s *Screen) clipboard(rest string) {
	_, data, ok := strings.Cut(rest, ";")
	if !ok || data == "?" {
		return // what is on the clipboard is nobody's business
	}
	if content, err := base64.StdEncoding.DecodeString(data); err == nil {
		s.tell(EventClipboard, string(content))
	}
}

// setPalette is OSC 4: pairs of an index and a colour, or a question mark.
func (s *Screen) setPalette(m *machine, rest string) {
	parts := strings.Split(rest, ";")
	for i := 0; i+1 < len(parts); i += 2 {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 || n > 255 {
			continue
		}
		if parts[i+1] == "?" {
			s.answerOSC(m, "4;"+strconv.Itoa(n)+";"+colorText(s.Palette(n)))
		} else if c, ok := parseColor(parts[i+1]); ok {
			if s.palette.changed == nil {
				s.palette.changed = map[int]Color{}
			}
			s.palette.changed[n] = c
		}
	}
}

func (s *Screen) resetPalette(rest string) {
	if rest == "" {
		s.palette.changed = nil
		return
	}
	for _, p := range strings.Split(rest, ";") {
		if n, err := strconv.Atoi(p); err == nil {
			delete(s.palette.changed, n)
		}
	}
}

// setSpecial is OSC 10, 11 and 12; further colours belong to the next numbers.
func (s *Screen) setSpecial(m *machine, i int, rest string) {
	for _, v := range strings.Split(rest, ";") {
		if i >= len(s.palette.special) {
			return
		}
		if v == "?" {
			r, g, b := split(s.special(i))
			s.answerOSC(m, strconv.Itoa(10+i)+";"+colorText(r, g, b))
		} else if c, ok := parseColor(v); ok {
			s.palette.special[i] = c
		}
		i++
	}
}

// palette is what OSC 4, 10, 11 and 12 changed.
type palette struct {
	changed map[int]Color // 0…255
	special [3]Color      // foreground, background, cursor; 0 where as at first
}

// first16 are xterm's.
var first16 = [16]uint32{
	0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
	0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
}

var firstSpecial = [3]Color{ColorRGB | 0xe5e5e5, ColorRGB, ColorRGB | 0xe5e5e5}

func split(c Color) (r, g, b uint8) { return uint8(c >> 16), uint8(c >> 8), uint8(c) }

// Palette is colour i of the palette, 0…255.
func (s *Screen) Palette(i int) (r, g, b uint8) {
	if c, ok := s.palette.changed[i]; ok {
		return split(c)
	}
	switch {
	case i < 0 || i > 255:
		return 0, 0, 0
	case i < 16:
		return split(Color(first16[i]))
	case i < 232:
		level := func(v int) uint8 {
			if v == 0 {
				return 0
			}
			return uint8(55 + 40*v)
		}
		i -= 16
		return level(i / 36), level(i / 6 % 6), level(i % 6)
	}
	v := uint8(8 + 10*(i-232))
	return v, v, v
}

// DefaultColors are the colours of ColorDefault, red, green and blue.
func (s *Screen) DefaultColors() (fg, bg [3]uint8) {
	for i, c := range []*[3]uint8{&fg, &bg} {
		c[0], c[1], c[2] = split(s.special(i))
	}
	return fg, bg
}

func (s *Screen) special(i int) Color {
	if c := s.palette.special[i]; c != 0 {
		return c
	}
	return firstSpecial[i]
}

// parseColor reads XParseColor's #rgb and rgb:r/g/b, of 1 to 4 digits each.
func parseColor(text string) (Color, bool) {
	var parts []string
	scaled := false
	if digits, ok := strings.CutPrefix(text, "#"); ok && len(digits)%3 == 0 && len(digits) <= 12 {
		n := len(digits) / 3
		parts = []string{digits[:n], digits[n : 2*n], digits[2*n:]}
	} else if digits, ok := strings.CutPrefix(text, "rgb:"); ok {
		parts, scaled = strings.Split(digits, "/"), true
	}
	if len(parts) != 3 {
		return 0, false
	}
	var v [3]int
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 16, 16)
		if err != nil || len(p) > 4 {
			return 0, false
		}
		if full := 1<<(4*len(p)) - 1; scaled {
			v[i] = int(n) * 255 / full
		} else {
			v[i] = int(n) << 16 >> (4 * len(p)) >> 8
		}
	}
	return rgb(v[0], v[1], v[2]), true
}

// colorText is how a colour is answered.
func colorText(r, g, b uint8) string {
	const hex = "0123456789abcdef"
	out := []byte("rgb:")
	for i, v := range []uint8{r, g, b} {
		if i > 0 {
			out = append(out, '/')
		}
		d := []byte{hex[v>>4], hex[v&15]}
		out = append(append(out, d...), d...)
	}
	return string(out)
}
