package files

import (
	"errors"
	"slices"
	"strings"
)

// What a Journal keeps of a directory that the run did not make, when it is renamed: more is listed as not covered.
var (
	maxMovedEntries = 20_000 // tests lower it
	maxMovedBytes   = int64(256 << 20)
)

// errMoved says that a directory holds more than is kept.
var errMoved = errors.New("more than is kept of a directory that is renamed")

// moves notes that what stands at two paths moves: from the first to the second, or both ways. What lies below a
// directory goes with it.
func (j *Journal) moves(nodes [2]*node, t *Touch) func() error {
	if len(t.Paths) != 2 || nodes[0] != nil && nodes[1] != nil && (nodes[0].holds(nodes[1]) || nodes[1].holds(nodes[0])) {
		return nil // nothing moves into itself
	}
	var at [2]sight
	var there [2]bool
	for i, n := range nodes {
		at[i], there[i] = seenAt(n, &t.Paths[i])
	}
	steps := []func() error{j.leaves(nodes[0], at[0], nodes[1])}
	if t.Exchange {
		steps = append(steps, j.leaves(nodes[1], at[1], nodes[0]))
	}
	arrive := func() {
		j.arrives(nodes[1], at[0])
		if t.Exchange {
			j.arrives(nodes[0], at[1])
		}
	}
	// Where nothing stands, or an empty directory, nothing stood below that the journal does not know of.
	if n := nodes[1]; n != nil && !t.Exchange && !n.is(losesBelow) && (!there[1] || isEmptyDir(n, &t.Paths[1])) {
		n.inherit(isFresh)
	}
	arrive()
	if steps = slices.DeleteFunc(steps, func(s func() error) bool { return s == nil }); len(steps) == 0 {
		return nil
	}
	return j.all([2]*node{}, append(steps, func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		arrive() // a barrier may have looked meanwhile, before anything was there
		return nil
	}))
}

// seenAt looks at a path of a call, whether it is one of the journal's or not.
func seenAt(n *node, p *TouchedPath) (sight, bool) {
	if n == nil && (p.Dir < 0 || !canBorrow) {
		return sight{}, false
	}
	if n == nil {
		s, err := borrowed(p.Dir).stat(p.Name)
		return s, err == nil
	}
	f, name, done := n.place(p)
	defer done()
	s, err := f.stat(name)
	return s, err == nil
}

// leaves notes that what s says goes from n to the node to. It returns what keeps the pre-images below before that.
func (j *Journal) leaves(n *node, s sight, to *node) func() error {
	if n == nil {
		return nil
	}
	if to != nil {
		from := len(n.path())
		n.each(func(c *node) {
			if c.links != nil {
				join2(c, to.reach(strings.TrimPrefix(c.path()[from:], "/")))
			}
		})
	}
	if !s.mode.IsDir() {
		return nil
	}
	n.each(j.mark)
	if n.state&(isFresh|losesBelow) != 0 {
		return nil
	}
	n.state |= isMoved
	return func() error {
		err := j.keepBelow(n)
		j.mu.Lock()
		defer j.mu.Unlock()
		n.each(j.mark)
		return err
	}
}

// arrives notes that what s says comes to n.
func (j *Journal) arrives(n *node, s sight) {
	if n == nil || !s.mode.IsDir() {
		return
	}
	n.state |= isDeep
	j.mark(n)
}

// isEmptyDir reports whether an empty directory stands at n.
func isEmptyDir(n *node, p *TouchedPath) bool {
	f, name, done := n.place(p)
	defer done()
	f, err := f.open(name)
	if err != nil {
		return false
	}
	defer f.close()
	names, err := f.names()
	return err == nil && len(names) == 0
}

// A mover keeps what lies below a directory.
type mover struct {
	j       *Journal
	entries int
	bytes   int64
}

// keepBelow keeps what lies below n, from where it is about to move away.
func (j *Journal) keepBelow(n *node) error {
	j.mu.Lock()
	path := n.path()
	j.mu.Unlock()
	f, err := n.root.top.open(path)
	if err != nil {
		return nil //nolint:nilerr // it is gone: nothing moves
	}
	defer f.close()
	m := &mover{j: j}
	return m.dir(n, f)
}

// dir keeps what lies below n, which is f. After it nothing stands below but what has a node, or it is known as not kept.
func (m *mover) dir(n *node, f folder) error {
	names, errList := f.names()
	for _, name := range names {
		if m.entries++; m.entries > maxMovedEntries || m.bytes > maxMovedBytes {
			errList = errMoved
			break
		}
		if err := m.one(n, f, name); err != nil {
			return err
		}
	}
	m.j.mu.Lock()
	defer m.j.mu.Unlock()
	switch {
	case errList == nil:
		n.inherit(isFresh)
	case errors.Is(errList, errMoved):
		m.j.lost[n] = TooMany
		n.inherit(losesBelow)
	case !isGone(errList):
		m.j.lost[n] = Unreadable
		n.inherit(losesBelow)
	}
	return nil
}

// one keeps one name in f, and what lies below.
func (m *mover) one(n *node, f folder, name string) error {
	s, err := f.stat(name)
	if err != nil {
		m.unseen(n, name, err)
		return nil
	}
	m.j.mu.Lock()
	if m.j.isExcluded(n.abs() + "/" + name) {
		m.j.mu.Unlock()
		return nil
	}
	c := n.child(name)
	wasKnown := c.is(isKnown)
	then, err := m.j.keep(c, f, name, &s)
	c.mark()
	if !wasKnown && s.mode.IsRegular() && !c.is(isLost) {
		m.bytes += s.size
	}
	m.j.mu.Unlock()
	if then != nil && err == nil {
		err = then()
	}
	if err != nil || !s.mode.IsDir() {
		return err
	}
	sub, err := f.open(name)
	if err != nil {
		m.unseen(n, name, err)
		return nil
	}
	defer sub.close()
	return m.dir(c, sub)
}

// unseen notes that name in n cannot be looked at. What vanished was never there.
func (m *mover) unseen(n *node, name string, err error) {
	if isAbsent(err) {
		return
	}
	m.j.mu.Lock()
	defer m.j.mu.Unlock()
	c := n.child(name)
	m.j.lost[c] = Unreadable
	c.inherit(losesBelow)
}

// join2 notes that a and b are, or will be, names of one file. Either may be nil.
func join2(a, b *node) {
	if a == nil || b == nil || a == b || a.links != nil && a.links == b.links {
		return
	}
	if a.links == nil {
		a.links = &linkGroup{names: []*node{a}}
	}
	if b.links == nil {
		b.links = a.links
		a.links.names = append(a.links.names, b)
		return
	}
	for _, n := range b.links.names {
		n.links = a.links
		a.links.names = append(a.links.names, n)
	}
}
