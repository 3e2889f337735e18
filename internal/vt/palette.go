package vt

import (
	"strconv"
	"strings"
)

const (
	maxTitle  = 1 << 16 // bytes of a title
	maxTitles = 10      // of the stack
	maxLink   = 2083    // bytes of a link, as other terminals have it
)

// reset is OSC 104: of some colours, of all where none is named.
func (p *palette) reset(rest string) {
	if rest == "" {
		p.changed = nil
		return
	}
	for _, index := range strings.Split(rest, ";") {
		if n, err := strconv.Atoi(index); err == nil {
			delete(p.changed, n)
		}
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

// color is colour i, 0…255.
func (p *palette) color(i int) (r, g, b uint8) {
	if c, ok := p.changed[i]; ok {
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

// of is special colour i as it is now.
func (p *palette) of(i int) Color {
	if c := p.special[i]; c != 0 {
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
