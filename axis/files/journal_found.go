package files

// Found returns what the run found at the paths of a root that calls named, as a partial tree: the directories that lead to
// them too, with their permissions, for a tree that is to be put back needs them. root counts the roots as NewJournal got
// them. Of a work tree with a snapshot it holds what the snapshot does not cover; With puts both together.
//
// What could not be kept is listed in NotCovered, and stands nowhere else.
func (j *Journal) Found(root int) *Tree {
	r := j.roots[root]
	f := &finder{j: j, r: r, t: &Tree{Root: r.Dir, Partial: true}}
	j.mu.Lock()
	f.below(r.node, "")
	j.mu.Unlock()
	f.t.sort()
	hideNames(f.t, j.o.Scrubber)
	f.t.settle()
	return f.t
}

// A finder makes a tree of nodes. Journal.mu is held meanwhile.
type finder struct {
	j *Journal
	r *journalRoot
	t *Tree
}

// below takes what is below n, which was a directory, and reports whether there was something.
func (f *finder) below(n *node, path string) (any bool) {
	for name, c := range n.below {
		if f.one(c, join(path, name)) {
			any = true
		}
	}
	return any
}

// one takes n and what is below, and reports whether it took something.
func (f *finder) one(n *node, path string) bool {
	wanted := n.is(isKnown) && n.taken == nil && f.wants(n, path)
	if why, ok := f.j.lost[n]; ok && wanted {
		f.t.NotCovered = append(f.t.NotCovered, NotCovered{Path: path, Reason: why})
	}
	switch {
	case n.is(isLost) || !n.is(isKnown) || n.taken != nil:
		return wanted
	case n.start == nil:
		if wanted {
			f.t.Absent = append(f.t.Absent, path)
		}
		return wanted
	}
	if n.start.mode.IsDir() && f.below(n, path) {
		wanted = true
	}
	if n.start.mode.IsDir() && n.is(isMoved) && !n.is(losesBelow) {
		f.t.Moved = append(f.t.Moved, path)
	}
	if wanted {
		f.t.Entries = append(f.t.Entries, *n.start.entry(path))
	}
	return wanted
}

// wants reports whether a path is not the snapshot's to tell of.
func (f *finder) wants(n *node, path string) bool {
	return f.r.Tree == nil || n.is(isIgnored) || !f.r.Tree.Covers(path)
}
