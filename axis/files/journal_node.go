package files

import "strings"

// A node is a path below a root, and what is known of it. All of it is guarded by Journal.mu. A run may touch many
// thousands: it is kept small.
type node struct {
	root  *journalRoot
	up    *node // nil of the root
	name  string
	below map[string]*node

	// What stands there has no Path, and is no tree's own.
	start *Entry // what the run found there; nil for nothing. Of a node that isKnown and not isLost
	last  *Entry // what stood there at the last barrier
	stamp *stamp
	links *linkGroup // nil where the run made no hard link of it
	taken *capture   // while the pre-image is being read

	state nodeState
	ino   uint64 // of the file that the run found, where it had other names
	at    uint32 // when it was last touched, ms since the journal began
	by    uint32 // who touched it last
}

type nodeState uint16

const (
	isKnown nodeState = 1 << iota // start is set
	isLost                        // what the run found is not kept
	// isFresh says that nothing stood at the paths below that have no node.
	isFresh
	// losesBelow says that what the run found at the paths below that have no node is not kept.
	losesBelow
	isDirty   // to be looked at at the next barrier
	hasDirty  // it, or one below, is dirty
	isDeep    // a directory came here with what it holds: all of it is to be looked at
	isHeld    // somebody could still write to it when it was last looked at, or that cannot be told
	isSure    // as long as its stamp is stamp, last is what stands there
	isIgnored // its last record was of an ignored path
	isShared  // the file that the run found had other names
	isMoved   // a directory that the run found here was renamed
	wasWhole  // a call ended the state of its last record
)

func (n *node) is(s nodeState) bool { return n.state&s != 0 }

// A linkGroup is a set of names of one file.
type linkGroup struct{ names []*node }

// A capture is the reading of a pre-image that goes on; done is closed at its end.
type capture struct {
	done chan struct{}
	err  error
}

// reach returns the node at path below n, and makes it.
func (n *node) reach(path string) *node {
	for path != "" {
		name, rest, _ := strings.Cut(path, "/")
		n, path = n.child(name), rest
	}
	return n
}

func (n *node) child(name string) *node {
	if c := n.below[name]; c != nil {
		return c
	}
	if n.below == nil {
		n.below = make(map[string]*node, 1)
	}
	// The name is cut from a path, which is the caller's: it would stay as a whole.
	c := &node{root: n.root, up: n, name: strings.Clone(name), state: n.state & (isFresh | losesBelow)}
	n.below[c.name] = c
	return c
}

// path returns the path below the root.
func (n *node) path() string {
	if n.up == nil {
		return ""
	}
	size := -1
	for a := n; a.up != nil; a = a.up {
		size += len(a.name) + 1
	}
	b := make([]byte, size)
	for a := n; a.up != nil; a = a.up {
		size -= len(a.name)
		copy(b[size:], a.name)
		if size--; size >= 0 {
			b[size] = '/'
		}
	}
	return string(b)
}

// holds reports whether c is n or lies below it.
func (n *node) holds(c *node) bool {
	for ; c != nil; c = c.up {
		if c == n {
			return true
		}
	}
	return false
}

// mark makes n one to be looked at.
func (n *node) mark() {
	n.state |= isDirty
	for a := n; a != nil && !a.is(hasDirty); a = a.up {
		a.state |= hasDirty
	}
}

// inherit sets s at n and everything below that has a node. What is not kept stays so: nobody knows that it is fresh.
func (n *node) inherit(s nodeState) {
	if s == isFresh && n.is(losesBelow) {
		return
	}
	n.state |= s
	for _, c := range n.below {
		c.inherit(s)
	}
}

// each calls do with n and every node below.
func (n *node) each(do func(*node)) {
	do(n)
	for _, c := range n.below {
		c.each(do)
	}
}

// abs returns the absolute path of a node.
func (n *node) abs() string { return n.root.Dir + "/" + n.path() }

// lookup returns the node at path below n, nil where there is none.
func (n *node) lookup(path string) *node {
	for path != "" && n != nil {
		name, rest, _ := strings.Cut(path, "/")
		n, path = n.below[name], rest
	}
	return n
}

// place opens the directory of n, where p does not give it. A directory that is not there is no directory: looking into it
// says so.
func (n *node) place(p *TouchedPath) (f folder, name string, done func()) {
	if p != nil && p.Dir >= 0 && canBorrow {
		return borrowed(p.Dir), p.Name, func() {}
	}
	f, err := n.root.top.open(n.up.path())
	if err != nil {
		return noFolder, n.name, func() {}
	}
	return f, n.name, f.close
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

// dirty calls do with each dirty node at or below n, and clears what leads to them.
func (n *node) dirty(do func(*node)) {
	if !n.is(hasDirty) {
		return
	}
	n.state &^= hasDirty
	if n.is(isDirty) {
		do(n)
	}
	for _, c := range n.below {
		c.dirty(do)
	}
	for _, c := range n.below {
		if c.is(hasDirty) {
			n.state |= hasDirty
		}
	}
	if n.is(isDirty) {
		n.state |= hasDirty
	}
}

// deep collects the directories in which everything is to be looked at.
func (n *node) deep(all *[]*node, now uint32) {
	if !n.is(hasDirty) {
		return
	}
	if n.is(isDeep) {
		*all = append(*all, n)
		if now-n.at >= uint32(youngTime.Milliseconds()) {
			n.state &^= isDeep
		}
	}
	for _, c := range n.below {
		c.deep(all, now)
	}
}
