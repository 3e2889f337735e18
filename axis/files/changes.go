package files

import "strings"

// A Change is what became of one path between two trees. Before is nil where the path is new, After where it is gone.
type Change struct {
	Path          string
	Before, After *Entry
}

// Changes compares two snapshots of one tree, sorted by path. Everything that a Tree holds counts: contents, types,
// targets and permissions, directories too. A path that either snapshot does not cover is not compared: whether it
// changed is not known. The entries are those of the trees, not copies.
func Changes(before, after *Tree) []Change {
	var out []Change
	b, a := before.Entries, after.Entries
	for len(b) > 0 || len(a) > 0 {
		var c Change
		switch order := compareFirst(b, a); {
		case order < 0:
			c = Change{Path: b[0].Path, Before: &b[0]}
			b = b[1:]
		case order > 0:
			c = Change{Path: a[0].Path, After: &a[0]}
			a = a[1:]
		default:
			c = Change{Path: b[0].Path, Before: &b[0], After: &a[0]}
			b, a = b[1:], a[1:]
		}
		if !SameEntry(c.Before, c.After) && before.Covers(c.Path) && after.Covers(c.Path) {
			out = append(out, c)
		}
	}
	return out
}

// compareFirst orders the first entries of two sorted lists, of which at most one is empty; an empty list comes last.
func compareFirst(b, a []Entry) int {
	switch {
	case len(a) == 0:
		return -1
	case len(b) == 0:
		return 1
	}
	return strings.Compare(b[0].Path, a[0].Path)
}

// SameEntry reports whether there is no difference but in paths and times; nil is nothing.
func SameEntry(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && a.Attrs == b.Attrs && sameContent(a, b)
}

// IsSecret reports whether one side is a file whose true bytes are not in the store.
func (c *Change) IsSecret() bool {
	return c.Before != nil && c.Before.Secret != "" || c.After != nil && c.After.Secret != ""
}

// InGit reports whether the path is a .git, or lies in one: such a change is in no patch, and Apply leaves it alone.
func (c *Change) InGit() bool { return inGit(c.Path) }

// Reverse returns the change that takes c back.
func (c *Change) Reverse() Change { return Change{Path: c.Path, Before: c.After, After: c.Before} }

// sides returns what Git sees of a change: directories and FIFOs are nothing, and of the permissions only the owner's x counts. ok
// is false where it sees no change at all.
func (c *Change) sides() (before, after *Entry, ok bool) {
	before, after = gitSide(c.Before), gitSide(c.After)
	switch {
	case before == nil && after == nil:
		return nil, nil, false
	case before == nil || after == nil:
		return before, after, true
	}
	return before, after, before.Mode.Git() != after.Mode.Git() || !sameContent(before, after)
}

func gitSide(e *Entry) *Entry {
	if e == nil || e.isPlace() {
		return nil
	}
	return e
}
