package vt

import (
	"encoding/binary"
	"math/bits"
)

// A sink is what a machine tells of a stream. Slices are valid during the call.
type sink interface {
	text(p []byte, at int64)           // a run of printable ASCII
	char(r rune, raw []byte, at int64) // another printable code point; U+FFFD for what is not UTF-8
	chars(p []byte, at int64) int      // p begins with what rune3 reads; how many bytes of such were taken, 3 or more
	control(c byte, at int64, n int)   // C0 or C1 (0x80…0x9f), n bytes of the stream; DEL and NUL too
	escape(m *machine, final byte)     // ESC, m.inter, final
	csi(m *machine, final byte)        // with m.prefix, m.params, m.inter
	str(m *machine, kind strKind)      // a control string that ended: m.data
}

// strKind is the kind of a control string.
type strKind uint8

const (
	strDCS strKind = iota // params and the final byte are in the machine
	strOSC
	strSOS
	strPM
	strAPC
)

const (
	maxParams = 32
	maxParam  = 1<<31 - 1
)

// A param is a parameter of a sequence: its value, -1 where it is left out, and whether a colon stands before it.
type param struct {
	value int32
	sub   bool
}

// A machine tells the sequences of a terminal's stream from its text. It keeps its place between calls, so that the cuts of the
// stream do not matter.
type machine struct {
	state   state
	u       decoder
	pos     int64 // of the next byte in the stream
	start   int64 // where the sequence that is open began
	end     int64 // of the sequence that is told of
	prefix  byte  // of '<', '=', '>', '?'
	inter   [2]byte
	inters  int // how many; above 2 the sequence is ignored
	params  [maxParams]param
	nparams int
	final   byte // of a DCS
	kind    strKind
	data    []byte // of a control string
	dataAt  int64  // where it begins in the stream
	c2      bool   // the last byte of a control string was the first of a C1 control in UTF-8
	bell    bool   // the control string ended with BEL
}

func (m *machine) ground() bool { return m.state == ground && m.u.n == 0 }

func (m *machine) clear() {
	m.prefix, m.inters, m.nparams = 0, 0, 0
	m.inter = [2]byte{}
}

// feed reads the next bytes of the stream.
func (m *machine) feed(p []byte, h sink) {
	for i := 0; i < len(p); {
		c := p[i]
		switch {
		case m.state >= dcsData:
			i += m.inString(p[i:], m.pos+int64(i), h)
			continue
		case m.u.n > 0 || c >= 0x80:
			if m.u.n == 0 && m.state == ground && rune3(p[i:]) != 0 {
				i += h.chars(p[i:], m.pos+int64(i))
				continue
			}
			i += m.wide(p[i:], m.pos+int64(i), h)
			continue
		case m.state == ground && c >= 0x20 && c < 0x7f:
			n := printable(p[i:])
			h.text(p[i:i+n], m.pos+int64(i))
			i += n
			continue
		case m.state == ground && c == 0x1b:
			if n := m.quick(p[i:], m.pos+int64(i)); n > 0 {
				h.csi(m, p[i+n-1])
				i += n
				continue
			}
		}
		m.step(c, m.pos+int64(i), 1, h)
		i++
	}
	m.pos += int64(len(p))
}

// quick reads a whole CSI sequence of parameters and a final byte. It is 0 for anything else, which the table is for.
func (m *machine) quick(p []byte, at int64) int {
	if len(p) < 3 || p[1] != '[' {
		return 0
	}
	i := 2
	m.clear()
	if c := p[2]; c >= 0x3c && c <= 0x3f {
		m.prefix = c
		i++
	}
	n, v, sub := 0, int32(-1), false
	for ; i < len(p); i++ {
		switch c := p[i]; {
		case c >= '0' && c <= '9':
			if v > 1e6 {
				return 0
			}
			v = max(v, 0)*10 + int32(c-'0')
		case c == ';' || c == ':':
			if n >= maxParams-1 {
				return 0
			}
			m.params[n] = param{v, sub}
			n++
			v, sub = -1, c == ':'
		case c >= 0x40 && c <= 0x7e:
			if n > 0 || v >= 0 || sub {
				m.params[n] = param{v, sub}
				n++
			}
			m.nparams = n
			m.start, m.end = at, at+int64(i)+1
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// wide reads a code point above ASCII.
func (m *machine) wide(p []byte, at int64, h sink) int {
	if m.u.n == 0 {
		m.u.at = at
	}
	r, n, ok := m.u.decode(p)
	if !ok {
		return n
	}
	raw, from := m.u.take(), m.u.at
	switch {
	case r < 0xa0:
		m.c1(byte(r), from, len(raw), h)
	case m.state == ground:
		h.char(r, raw, from)
	default: // no sequence goes on behind it
		m.state = ground
	}
	return n
}

// step takes one byte below 0x80 in any state but a control string.
func (m *machine) step(c byte, at int64, n int, h sink) {
	t := table[m.state][c]
	m.state = t.next
	switch t.do {
	case doControl:
		h.control(c, at, n)
	case doOpen:
		m.start = at
		m.clear()
	case doCollect:
		if m.inters < 2 {
			m.inter[m.inters] = c
		}
		m.inters++
	case doPrefix:
		m.prefix = c
	case doParam:
		m.param(c)
	case doEscape:
		m.end = at + int64(n)
		if m.inters <= 2 {
			h.escape(m, c)
		}
	case doCSI:
		m.end = at + int64(n)
		if m.inters <= 2 {
			h.csi(m, c)
		}
	case doDCS:
		m.final = c
		m.open(strDCS, at+int64(n))
	case doSkipDCS:
		m.open(strDCS, at+int64(n))
	case doString:
		m.open(stringKind(c|0x80|0x40), at+int64(n))
	}
}

func (m *machine) param(c byte) {
	if m.nparams == 0 {
		m.params[0], m.nparams = param{value: -1}, 1
	}
	if c == ';' || c == ':' {
		if m.nparams <= maxParams {
			m.nparams++ // one past the array: the rest is dropped
		}
		if m.nparams <= maxParams {
			m.params[m.nparams-1] = param{value: -1, sub: c == ':'}
		}
		return
	}
	if m.nparams > maxParams {
		return
	}
	v := &m.params[m.nparams-1].value
	*v = int32(min(int64(max(*v, 0))*10+int64(c-'0'), maxParam))
}

// c1 takes a C1 control, which ends whatever is open.
func (m *machine) c1(c byte, at int64, n int, h sink) {
	m.state = ground
	switch c {
	case 0x90, 0x9b:
		m.start = at
		m.clear()
		m.state = csiEntry
		if c == 0x90 {
			m.state = dcsEntry
		}
	case 0x98, 0x9d, 0x9e, 0x9f:
		m.start = at
		m.clear()
		m.state = stringData
		m.open(stringKind(c), at+int64(n))
	case 0x9c:
	default:
		h.control(c, at, n)
	}
}

func stringKind(c byte) strKind {
	switch c &^ 0x40 {
	case 0x9d:
		return strOSC
	case 0x98:
		return strSOS
	case 0x9e:
		return strPM
	}
	return strAPC
}

func (m *machine) open(k strKind, at int64) {
	m.kind, m.dataAt, m.c2 = k, at, false
	m.data = m.data[:0]
}

// inString reads on in a control string, up to its end.
func (m *machine) inString(p []byte, at int64, h sink) int {
	for i, c := range p {
		was := m.c2
		m.c2 = c == 0xc2
		end := c == 0x1b || c == 0x18 || c == 0x1a || c == 0x07 && m.kind == strOSC || was && c >= 0x80 && c < 0xa0
		if !end {
			continue
		}
		m.keep(p[:i])
		if was && c >= 0x80 {
			m.data = m.data[:max(len(m.data)-1, 0)]
		}
		m.close(c, at+int64(i), h)
		return i + 1
	}
	m.keep(p)
	return len(p)
}

func (m *machine) keep(p []byte) {
	if room := MaxString - len(m.data); len(p) > room {
		p = p[:room]
	}
	m.data = append(m.data, p...)
}

// close ends a control string at its last byte, c.
func (m *machine) close(c byte, at int64, h sink) {
	ignored := m.state == dcsIgnore
	m.state = ground
	m.c2 = false
	m.end, m.bell = at+1, c == 0x07
	if c != 0x18 && c != 0x1a && !ignored && (c < 0x80 || c == 0x9c) {
		h.str(m, m.kind)
	}
	if cap(m.data) > 1<<16 {
		m.data = nil
	}
	switch {
	case c == 0x1b:
		m.start = at
		m.clear()
		m.state = escape
	case c == 0x18 || c == 0x1a:
		h.control(c, at, 1)
	case c >= 0x80:
		m.c1(c, at-1, 2, h)
	}
}

// printable is how many bytes of printable ASCII p begins with. It looks at eight at a time.
func printable(p []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(p); i += 8 {
		v := binary.LittleEndian.Uint64(p[i:])
		// A byte below 0x20 borrows, 0x7f carries, and what is above has the bit already. The lowest one is the right one.
		if odd := ((v - 0x20*ones) | (v + ones) | v) & highs; odd != 0 {
			return i + bits.TrailingZeros64(odd)/8
		}
	}
	for ; i < len(p); i++ {
		if p[i]-0x20 >= 0x5f {
			break
		}
	}
	return i
}

// rune3 is the code point of three bytes that p begins with, as most wide ones have, or 0.
func rune3(p []byte) rune {
	if len(p) < 3 || p[0] < 0xe1 || p[0] > 0xec || p[1]&0xc0 != 0x80 || p[2]&0xc0 != 0x80 {
		return 0
	}
	return rune(p[0]&15)<<12 | rune(p[1]&63)<<6 | rune(p[2]&63)
}

// num is parameter i, def where it is left out or 0.
func (m *machine) num(i, def int) int {
	if v := m.raw(i, 0); v > 0 {
		return v
	}
	return def
}

// raw is parameter i, def where it is left out. It is capped to what positions and counts can be.
func (m *machine) raw(i, def int) int {
	if i >= min(m.nparams, maxParams) || m.params[i].value < 0 {
		return def
	}
	return min(int(m.params[i].value), 1<<20)
}

// seq names a CSI sequence: prefix, intermediates, final.
func seq(prefix, inter, final byte) uint32 {
	return uint32(prefix)<<16 | uint32(inter)<<8 | uint32(final)
}
