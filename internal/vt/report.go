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
		}
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

func (s *Screen) osc(m *machine, data string) {
	number, rest, _ := strings.Cut(data, ";")
	switch number {
	case "0", "2":
		if len(rest) > maxTitle {
			rest = strings.ToValidUTF8(rest[:maxTitle], "")
		}
		s.title = rest
	case "4":
		s.setPalette(m, rest)
	case "104":
		s.palette.reset(rest)
	case "8":
		s.hyperlink(rest)
	case "10", "11", "12":
		s.setSpecial(m, int(number[1]-'0'), rest)
	case "110", "111", "112":
		s.palette.special[number[2]-'0'] = 0
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

// setPalette is OSC 4: pairs of an index and a colour, or a question mark.
func (s *Screen) setPalette(m *machine, rest string) {
	parts := strings.Split(rest, ";")
	for i := 0; i+1 < len(parts); i += 2 {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 || n > 255 {
			continue
		}
		if parts[i+1] == "?" {
			s.answerOSC(m, "4;"+strconv.Itoa(n)+";"+colorText(s.palette.color(n)))
		} else if c, ok := parseColor(parts[i+1]); ok {
			if s.palette.changed == nil {
				s.palette.changed = map[int]Color{}
			}
			s.palette.changed[n] = c
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
			r, g, b := split(s.palette.of(i))
			s.answerOSC(m, strconv.Itoa(10+i)+";"+colorText(r, g, b))
		} else if c, ok := parseColor(v); ok {
			s.palette.special[i] = c
		}
		i++
	}
}

// linkURI is the address of a link as it is interned: id, semicolon, address.
func linkURI(link string) string {
	_, uri, _ := strings.Cut(link, ";")
	return uri
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
