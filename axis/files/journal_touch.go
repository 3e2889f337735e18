package files

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// shortFile is the length in bytes of the longest pre-image that Touch copies itself; a longer one is for what it returns.
const shortFile = 256 << 10

// Touch keeps what stands at the paths of a call, before the call is carried out. What it returns, where it is not nil, must
// be run, for other calls may wait for it, and have returned before the call goes on; it may run beside anything. Its error is
// the store's, or says that a directory on the way could not be kept: the run cannot be recorded any more.
func (j *Journal) Touch(t *Touch) (then func() error) {
	var steps []func() error
	var nodes [2]*node
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range min(len(t.Paths), len(nodes)) {
		p := &t.Paths[i]
		n := j.find(p.Path)
		if n == nil || n.root.err != nil {
			continue
		}
		nodes[i] = n
		n.by = t.By
		if t.Link && i == 0 {
			continue // what is linked stays as it is
		}
		switch {
		case t.Ends && i == len(t.Paths)-1:
			steps = append(steps, j.ends(n))
		case t.Rename && !t.Exchange && j.leavesRoot(n, t):
			n.each(func(c *node) { steps = append(steps, j.ends(c)) })
		}
		step, err := j.touch(n, p)
		steps = append(steps, step)
		if err != nil {
			return j.all(nodes, append(steps, func() error { return err }))
		}
	}
	switch {
	case t.Rename || t.Exchange:
		steps = append(steps, j.moves(nodes, t))
	case t.Link && nodes[1] != nil:
		join2(nodes[0], nodes[1])
	}
	return j.all(nodes, steps)
}

// leavesRoot reports whether what stands at n goes to another root. A replay may have these on two mounts, where a program copies it and
// deletes it here: so it ends in both.
func (j *Journal) leavesRoot(n *node, t *Touch) bool {
	to := j.find(t.Paths[len(t.Paths)-1].Path)
	return to == nil || to.root != n.root
}

// all returns what does steps, nil for none to do. Behind them the nodes are marked again: only now the call goes on, and a
// barrier in between saw nothing of it.
func (j *Journal) all(nodes [2]*node, steps []func() error) func() error {
	todo := steps[:0]
	for _, s := range steps {
		if s != nil {
			todo = append(todo, s)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	return func() error {
		var errs []error
		for _, s := range todo {
			errs = append(errs, s())
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, n := range nodes {
			if n != nil {
				j.mark(n)
			}
		}
		return errors.Join(errs...)
	}
}

// mark makes n one to be looked at, touched now.
func (j *Journal) mark(n *node) {
	n.at = j.ms(time.Now())
	n.mark()
}

func (j *Journal) ms(t time.Time) uint32 { return uint32(t.Sub(j.began).Milliseconds()) }

// touch keeps one path, and the other names of its file. What it returns is to be run even where there is an error.
func (j *Journal) touch(n *node, p *TouchedPath) (func() error, error) {
	if err := j.keepUp(n.up); err != nil {
		return nil, err
	}
	then, err := j.keepAt(n, p)
	j.mark(n)
	if n.links == nil || err != nil {
		return then, err
	}
	steps := []func() error{then}
	for _, other := range n.links.names {
		if other == n {
			continue
		}
		if err = j.keepUp(other.up); err != nil {
			break
		}
		if then, err = j.keepAt(other, nil); err != nil {
			break
		}
		j.mark(other)
		steps = append(steps, then)
	}
	return j.all([2]*node{}, steps), err
}

// keepAt keeps n as p names it, or by its path where p gives no directory.
func (j *Journal) keepAt(n *node, p *TouchedPath) (func() error, error) {
	if n.is(isKnown) || n.state&(isFresh|losesBelow) != 0 {
		return j.keep(n, folder{}, "", nil)
	}
	f, name, done := n.place(p)
	defer done()
	return j.keep(n, f, name, nil)
}

// keepUp keeps the directories that lead to a path, as they stand, so that a tree of what was found has them. No call has
// named them, so they are as the run found them.
func (j *Journal) keepUp(n *node) error {
	if n == nil || n.is(isKnown) {
		return nil
	}
	if err := j.keepUp(n.up); err != nil {
		return err
	}
	then, err := j.keepAt(n, nil) // no further than its directory, if that is one still
	if then != nil && err == nil {
		err = then()
	}
	return err
}

// keep takes the pre-image of n, which is name in f, unless it has it. s is what stands there; nil is not known yet. then, where
// it is not nil, is to be done before a change.
func (j *Journal) keep(n *node, f folder, name string, s *sight) (then func() error, err error) {
	switch {
	case n.taken != nil:
		c := n.taken
		return func() error { <-c.done; return c.err }, nil
	case n.is(isKnown):
		return nil, nil
	case n.is(isFresh):
		n.state |= isKnown
		return nil, nil
	case n.is(losesBelow):
		n.state |= isKnown | isLost
		return nil, nil
	}
	if s == nil {
		now, err := f.stat(name)
		if err != nil {
			return nil, j.found(n, nil, unreadable(err))
		}
		s = &now
	}
	if s.mode.IsRegular() {
		return j.keepFile(n, f, name, s)
	}
	e, err := j.o.see(f, name, s)
	return nil, j.found(n, e, err)
}

// found notes what a run found at n. It returns the errors that end it.
func (j *Journal) found(n *node, k *Entry, err error) error {
	why, skipped := reasonOf(err)
	n.state |= isKnown
	switch {
	case err == nil:
		n.start, n.last = k, k
		if k == nil || !k.Mode.IsDir() {
			n.inherit(isFresh)
		}
	case errors.Is(err, errGone):
		n.inherit(isFresh)
	case skipped:
		n.state |= isLost
		j.lost[n] = why
	default:
		return err
	}
	return nil
}

// keepFile is keep of a regular file.
func (j *Journal) keepFile(n *node, f folder, name string, s *sight) (func() error, error) {
	if s.links > 1 && n.links == nil {
		n.state |= isShared
		n.ino = s.ino
	}
	path := n.path()
	was, sure := n.root.inTree(path, s)
	if sure {
		e := *was
		e.Path = ""
		return nil, j.found(n, &e, nil)
	}
	if s.size > j.o.MaxFileSize {
		return nil, j.found(n, nil, &errSkipped{TooLarge})
	}
	file, now, err := f.read(name)
	if err != nil {
		return nil, j.found(n, nil, unreadable(err))
	}
	attrs := file.attrs().encode(j.o.Scrubber)
	read := func() (*Entry, error) {
		defer file.Close()
		got, err := j.o.content(j.o.Store, file, &now, n.root.Prefix+path, was)
		if err == nil {
			got.entry.Attrs = attrs
		}
		return got.entry, err
	}
	if now.size <= shortFile {
		k, err := read()
		return nil, j.found(n, k, err)
	}
	n.taken = &capture{done: make(chan struct{})}
	n.state |= isKnown
	return func() error {
		k, err := read()
		j.mu.Lock()
		defer j.mu.Unlock()
		c := n.taken
		n.taken = nil
		c.err = j.found(n, k, err)
		close(c.done)
		return c.err
	}, nil
}

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
