package vt

import "math/bits"

// sgr is SGR, with colons and with semicolons.
func (s *Screen) sgr(m *machine) {
	n := min(m.nparams, maxParams)
	if n == 0 {
		s.pen = s.plain()
		return
	}
	for i := 0; i < n; {
		subs := 0
		for i+1+subs < n && m.params[i+1+subs].sub {
			subs++
		}
		i += s.attribute(m, i, subs, n)
	}
}

// plain is the pen after SGR 0: links and protection stay.
func (s *Screen) plain() pen {
	p := pen{protect: s.pen.protect}
	p.setLink(s.pen.link())
	return p
}

// attribute takes parameter i with the parameters behind colons after it, and says how many it took.
func (s *Screen) attribute(m *machine, i, subs, n int) int {
	p := &s.pen
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
		s.simple(v)
	}
	return took
}

func (s *Screen) simple(v int) {
	p := &s.pen
	switch v {
	case 0:
		s.pen = s.plain()
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

// leastInterned is how many values a table holds before any are dropped. Tests lower it.
var leastInterned = 1 << 14

// limitOf is how many values a table may hold of which n were in use at the last look.
func limitOf(n int) int { return max(leastInterned, 4*n) }

// penTable holds pens, which cells name by their index. Index 0 is the zero pen.
type penTable struct {
	list  []pen
	slots []uint32 // index + 1 of the pen, in the first free place from its hash on
	limit int
}

func newPenTable() penTable {
	return penTable{list: []pen{{}}, slots: make([]uint32, 64), limit: leastInterned}
}

func (p *pen) hash() uint64 {
	small := uint64(p.attr)<<16 | uint64(p.under)<<8
	if p.protect {
		small |= 1
	}
	h, l := bits.Mul64(p.colors^0x9e3779b97f4a7c15, small^p.more^0xd6e8feb86659fd93)
	return (h ^ l ^ p.colors>>32 ^ p.more) * 0x9e3779b97f4a7c15
}

func (t *penTable) put(p pen) uint32 {
	if p == (pen{}) {
		return 0
	}
	mask := uint64(len(t.slots) - 1)
	at := p.hash() >> 32 & mask
	for ; t.slots[at] != 0; at = (at + 1) & mask {
		if i := t.slots[at] - 1; t.list[i] == p {
			return i
		}
	}
	t.list = append(t.list, p)
	t.slots[at] = uint32(len(t.list))
	if 2*len(t.list) > len(t.slots) {
		t.grow(2 * len(t.slots))
	}
	return uint32(len(t.list) - 1)
}

func (t *penTable) grow(n int) {
	t.slots = make([]uint32, n)
	mask := uint64(n - 1)
	for i := 1; i < len(t.list); i++ {
		at := t.list[i].hash() >> 32 & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(i + 1)
	}
}

func (t *penTable) full() bool { return len(t.list) >= t.limit }

// keep drops every pen but the marked ones and returns their new indices.
func (t *penTable) keep(marked []bool) []uint32 {
	to := make([]uint32, len(t.list))
	kept := t.list[:1]
	for i := 1; i < len(t.list); i++ {
		if marked[i] {
			to[i] = uint32(len(kept))
			kept = append(kept, t.list[i])
		}
	}
	t.list, t.limit = kept, limitOf(len(kept))
	size := 64
	for size < 2*len(kept) {
		size *= 2
	}
	t.grow(size)
	return to
}

// stringTable holds strings in the same way. Index 0 is the empty string.
type stringTable struct {
	list  []string
	index map[string]uint32
	limit int
}

func newStringTable() stringTable {
	return stringTable{list: []string{""}, index: map[string]uint32{}, limit: leastInterned}
}

func (t *stringTable) put(b []byte) uint32 {
	if i, ok := t.index[string(b)]; ok {
		return i
	}
	v := string(b)
	i := uint32(len(t.list))
	t.list = append(t.list, v)
	t.index[v] = i
	return i
}

func (t *stringTable) full() bool { return len(t.list) >= t.limit }

func (t *stringTable) keep(marked []bool) []uint32 {
	to := make([]uint32, len(t.list))
	next := newStringTable()
	for i := 1; i < len(t.list); i++ {
		if marked[i] {
			to[i] = uint32(len(next.list))
			next.index[t.list[i]] = to[i]
			next.list = append(next.list, t.list[i])
		}
	}
	next.limit = limitOf(len(next.list))
	*t = next
	return to
}

// collect drops the pens, clusters and links that nothing names, where one of them is full.
func (s *Screen) collect() {
	if !s.pens.full() && !s.clusters.full() && !s.links.full() {
		return
	}
	pens, clusters := make([]bool, len(s.pens.list)), make([]bool, len(s.clusters.list))
	s.eachCell(func(c *cell) {
		pens[c.st] = true
		if c.ch&isCluster != 0 {
			clusters[c.ch&chMask] = true
		}
	})
	links := make([]bool, len(s.links.list))
	for i, p := range s.pens.list {
		if pens[i] {
			links[p.link()] = true
		}
	}
	s.eachPen(func(p *pen) { links[p.link()] = true })
	toLink := s.links.keep(links)
	for i := range s.pens.list {
		p := &s.pens.list[i]
		p.setLink(toLink[p.link()])
	}
	s.eachPen(func(p *pen) { p.setLink(toLink[p.link()]) })
	toPen, toCluster := s.pens.keep(pens), s.clusters.keep(clusters)
	s.eachCell(func(c *cell) {
		c.st = toPen[c.st]
		if c.ch&isCluster != 0 {
			c.ch = c.ch&^chMask | toCluster[c.ch&chMask]
		}
	})
	s.stale = true
}

func (s *Screen) eachCell(f func(*cell)) {
	for _, b := range []*buffer{&s.primary, &s.alternate} {
		for _, l := range b.rows {
			l.each(f)
		}
		for i := range b.hist.n {
			l := b.hist.at(i)
			l.each(f)
		}
	}
}

func (s *Screen) eachPen(f func(*pen)) {
	f(&s.pen)
	f(&s.primary.saved.pen)
	f(&s.alternate.saved.pen)
}
