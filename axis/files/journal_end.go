package files

import (
	"iter"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// End is the last Barrier, once the program has ended. In the work tree after, a snapshot, says what stands there, of paths that
// no call named too: played on the tree that the run found (After), all records together give what Git sees of it. after is nil
// where none was taken.
func (j *Journal) End(after *Tree) iter.Seq2[tape.Record, error] {
	return func(yield func(tape.Record, error) bool) {
		if !j.play(j.takeEnded(anybody), yield) {
			return
		}
		j.final = true
		items := j.collect(true, anybody)
		for _, r := range j.roots {
			if r.Tree != nil && after != nil {
				r.after = after
				items = j.decide(r, items)
			}
		}
		sortItems(items)
		j.play(j.shown(items), yield)
	}
}

// decide replaces the items of a work tree by those that its snapshots give, but for those that the snapshots do not cover.
func (j *Journal) decide(r *journalRoot, items []*item) []*item {
	covers := func(path string) bool { return r.Tree.Covers(path) && r.after.Covers(path) }
	items = slices.DeleteFunc(items, func(it *item) bool { return it.root == r && covers(it.rel) })
	looked := make(map[*node]bool)
	for _, it := range items {
		looked[it.n] = true
	}
	nodes := make(map[string]*node)
	j.mu.Lock()
	r.node.each(func(n *node) {
		if n.up == nil || n.last == n.start && !n.is(isIgnored) {
			return
		}
		path := n.path()
		if covers(path) {
			nodes[path] = n
		} else if !looked[n] && r.Tree.Covers(path) {
			// What the records so far say of it counts no more.
			items = append(items, &item{root: r, n: n, rel: path, path: r.opts.place(path)})
		}
	})
	j.mu.Unlock()
	for _, c := range Changes(r.said.tree(), r.after) {
		it := &item{root: r, n: nodes[c.Path], rel: c.Path, path: r.opts.place(c.Path), told: &c}
		items = append(items, it)
	}
	return items
}
