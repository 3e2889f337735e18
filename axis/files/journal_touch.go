package files

import (
	"errors"
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
		if t.Ends && i == len(t.Paths)-1 {
			steps = append(steps, j.ends(n))
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
	e, err := j.see(f, name, s)
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
	attrs := j.attrs(f, name)
	read := func() (*Entry, error) {
		defer file.Close()
		got, err := j.content(j.o.Store, file, &now, n.root.Prefix+path, was, nil)
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
	return func() error { return j.keepLong(n, read) }, nil
}

// keepLong reads a long pre-image.
func (j *Journal) keepLong(n *node, read func() (*Entry, error)) error {
	k, err := read()
	j.mu.Lock()
	defer j.mu.Unlock()
	c := n.taken
	n.taken = nil
	c.err = j.found(n, k, err)
	close(c.done)
	return c.err
}

// inTree returns the file that the snapshot from before the run has at path. It is sure that it stands there as it is in
// the snapshot where it has not changed since that began: nobody sets the time of the last change.
func (r *journalRoot) inTree(path string, s *sight) (e *Entry, sure bool) {
	if r.Tree == nil {
		return nil, false
	}
	e, ok := r.Tree.Lookup(path)
	if !ok || !e.Mode.IsRegular() {
		return nil, false
	}
	sure = !r.TreeAt.IsZero() && s.ctime < r.TreeAt.Add(-racyWindow).UnixNano() && s.mode == e.Mode
	return e, sure && (e.Secret != "" || s.size == e.Size)
}
