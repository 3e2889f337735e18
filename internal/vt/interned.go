package vt

// leastInterned is how many values a table holds before any are dropped. Tests lower it.
var leastInterned = 1 << 14

// limitOf is how many values a table may hold of which n were in use at the last look.
func limitOf(n int) int { return max(leastInterned, 4*n) }

// An interned table holds values, which cells and pens name by their index. Index 0 is the zero value.
type interned[T comparable] struct {
	list  []T
	index map[T]uint32
	limit int
}

func newInterned[T comparable]() interned[T] {
	var zero T
	return interned[T]{list: []T{zero}, index: map[T]uint32{zero: 0}, limit: leastInterned}
}

func (t *interned[T]) put(v T) uint32 {
	i, ok := t.index[v]
	if !ok {
		i = uint32(len(t.list))
		t.list = append(t.list, v)
		t.index[v] = i
	}
	return i
}

// putText is put of a text that is known already nearly always.
func putText(t *interned[string], b []byte) uint32 {
	if i, ok := t.index[string(b)]; ok {
		return i
	}
	return t.put(string(b))
}

func (t *interned[T]) full() bool { return len(t.list) >= t.limit }

// keep drops every value but the marked ones and returns their new indices.
func (t *interned[T]) keep(marked []bool) []uint32 {
	to := make([]uint32, len(t.list))
	next := newInterned[T]()
	for i := 1; i < len(t.list); i++ {
		if marked[i] {
			to[i] = next.put(t.list[i])
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
