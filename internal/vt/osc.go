package vt

import (
	"encoding/base64"
	"strconv"
	"strings"
)

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
