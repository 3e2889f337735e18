package vt

import "math/bits"

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
