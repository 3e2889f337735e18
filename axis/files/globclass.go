package files

import "strings"

// parseClass reads the bracket expression whose first byte behind "[" is p[i], and returns its class and the index
// behind its "]"; nil where it has no end or names an unknown class, which makes the whole pattern match nothing.
func parseClass(p string, i int) (*[4]uint64, int) {
	c := &[4]uint64{}
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	var prev byte // the byte before a "-", 0 where a range cannot begin there
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0
		}
		if p[i] == ']' && !first {
			break
		}
		if i, prev = classItem(c, p, i, prev); i < 0 {
			return nil, 0
		}
	}
	if negated {
		invert(c)
	}
	c['/'>>6] &^= 1 << ('/' & 63)
	return c, i + 1
}

// classItem adds what stands at p[i] to c: an escaped byte, a range, a named class or a byte. It returns the index
// behind it, negative where the expression is broken, and the byte that a range may begin with.
func classItem(c *[4]uint64, p string, i int, prev byte) (int, byte) {
	switch {
	case p[i] == '\\':
		if i+1 == len(p) {
			return -1, 0
		}
		set(c, p[i+1])
		return i + 2, p[i+1]
	case p[i] == '-' && prev != 0 && i+1 < len(p) && p[i+1] != ']':
		return classRange(c, p, i+1, prev), 0
	case p[i] == '[' && i+1 < len(p) && p[i+1] == ':':
		return namedClass(c, p, i)
	}
	set(c, p[i])
	return i + 1, p[i]
}

// classRange adds the bytes from lo to the one at p[i], which may be escaped.
func classRange(c *[4]uint64, p string, i int, lo byte) int {
	if p[i] == '\\' {
		if i++; i == len(p) {
			return -1
		}
	}
	for b := int(lo); b <= int(p[i]); b++ {
		set(c, byte(b))
	}
	return i + 1
}

// namedClass adds "[:name:]" at p[i]. Where it lacks the ":]" the "[" is a byte like any other.
func namedClass(c *[4]uint64, p string, i int) (int, byte) {
	end := strings.IndexByte(p[i+2:], ']')
	if end < 0 {
		return -1, 0
	}
	name := p[i+2 : i+2+end]
	if !strings.HasSuffix(name, ":") {
		set(c, '[')
		return i + 1, '['
	}
	has, ok := posixClasses[strings.TrimSuffix(name, ":")]
	if !ok {
		return -1, 0
	}
	for b := range 128 {
		if has(byte(b)) {
			set(c, byte(b))
		}
	}
	return i + 3 + end, 0
}

// posixClasses holds the named classes, over ASCII as Git has them.
var posixClasses = map[string]func(byte) bool{
	"alnum":  func(b byte) bool { return isAlpha(b) || isDigit(b) },
	"alpha":  isAlpha,
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  func(b byte) bool { return b < 0x20 || b == 0x7f },
	"digit":  isDigit,
	"graph":  func(b byte) bool { return b > 0x20 && b < 0x7f },
	"lower":  func(b byte) bool { return 'a' <= b && b <= 'z' },
	"print":  func(b byte) bool { return b >= 0x20 && b < 0x7f },
	"punct":  func(b byte) bool { return b > 0x20 && b < 0x7f && !isAlpha(b) && !isDigit(b) },
	"space":  func(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' },
	"upper":  func(b byte) bool { return 'A' <= b && b <= 'Z' },
	"xdigit": func(b byte) bool { return isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' },
}

func isAlpha(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
func isDigit(b byte) bool { return '0' <= b && b <= '9' }
