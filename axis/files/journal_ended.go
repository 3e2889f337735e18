package files

import "errors"

// A state that stands at a path for a while only, because a call cuts, deletes or replaces it before the next barrier, is looked
// at when that call is made. Records of such states are marked, and so is the one behind a state that a barrier had seen already:
// chance did not decide that it was seen, so two runs that differ in it differ.

// maxEnded is the length in bytes of the longest file of which a state that ends is kept.
const maxEnded = 8 << 20

// wholeKey is the key of a file record that marks a state which a call ended, or the record behind one.
const wholeKey = "whole"

// ends returns what looks at n, whose state is about to end; nil where no record would come of it. It is called under mu.
func (j *Journal) ends(n *node) (then func() error) {
	switch {
	case !n.is(isKnown) || n.taken != nil || n.up == nil:
		return nil
	case !n.is(isDirty):
		j.endsAsSeen(n)
		return nil
	}
	it := &item{root: n.root, n: n, rel: n.path(), look: &look{whole: true}}
	it.path = n.root.opts.place(it.rel)
	return func() error {
		l := looker{j: j, most: maxEnded}
		defer l.close()
		l.one(it)
		if _, skipped := reasonOf(it.err); skipped || errors.Is(it.err, errGone) {
			return nil
		}
		it.text = nil // there may be many: the store has it
		j.mu.Lock()
		defer j.mu.Unlock()
		j.ended = append(j.ended, it)
		return it.err
	}
}

// endsAsSeen notes that the state which the last barrier saw at n is about to end. What the run found there is no state of its own.
func (j *Journal) endsAsSeen(n *node) {
	if !sameKept(n.start, n.last) {
		n.state |= wasWhole
	}
}

// takeEnded takes the states that ended, of the nodes that are wanted, sorted by path; those of one path as they came.
func (j *Journal) takeEnded(wanted func(*node) bool) []*item {
	j.mu.Lock()
	var mine, rest []*item
	for _, it := range j.ended {
		if wanted(it.n) {
			mine = append(mine, it)
		} else {
			rest = append(rest, it)
		}
	}
	j.ended = rest
	j.mu.Unlock()
	sortItems(mine)
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.shown(mine)
}
