package vt

// interned holds values that cells name by their index. Index 0 is the zero value.
type interned[T comparable] struct {
	list  []T
	index map[T]uint32
	limit int // of the list, at which those that no cell names are dropped
}

// leastInterned is how many values are held before any are dropped.
const leastInterned = 4096

func newInterned[T comparable]() interned[T] {
	var zero T
	return interned[T]{list: []T{zero}, index: map[T]uint32{zero: 0}, limit: leastInterned}
}

func (n *interned[T]) put(v T) uint32 {
	if i, ok := n.index[v]; ok {
		return i
	}
	i := uint32(len(n.list))
	n.list = append(n.list, v)
	n.index[v] = i
	return i
}

func (n *interned[T]) full() bool { return len(n.list) >= n.limit }

// keep drops every value but the marked ones and returns their new indices.
func (n *interned[T]) keep(marked []bool) []uint32 {
	to := make([]uint32, len(n.list))
	next := newInterned[T]()
	for i, v := range n.list {
		if i > 0 && marked[i] {
			to[i] = next.put(v)
		}
	}
	next.limit = max(leastInterned, 2*len(next.list))
	*n = next
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
			for i := range l.cells[:l.used] {
				f(&l.cells[i])
			}
		}
		for i := range b.hist.n {
			l := b.hist.at(i)
			for i := range l.cells[:l.used] {
				f(&l.cells[i])
			}
		}
	}
}

func (s *Screen) eachPen(f func(*pen)) {
	f(&s.pen)
	f(&s.primary.saved.pen)
	f(&s.alternate.saved.pen)
}
