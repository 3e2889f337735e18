package files

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A treeBuilder is a tree, and what records make of it. It holds what differs.
type treeBuilder struct {
	before *Tree
	differ map[string]*Entry // nil for what is gone
	store  cas.Store

	staging *Staging // takes the contents that stand in records; nil where they are there
}

func newTreeBuilder(before *Tree, store cas.Store) *treeBuilder {
	return &treeBuilder{before: before, differ: make(map[string]*Entry), store: store}
}

// get returns what stands at path, nil for nothing.
func (b *treeBuilder) get(path string) *Entry {
	if e, ok := b.differ[path]; ok {
		return e
	}
	e, _ := b.before.Lookup(path)
	return e
}

// remove forgets path and, where it is a directory that something else replaces, what lies in it.
func (b *treeBuilder) remove(path string) {
	e := b.get(path)
	if e != nil && e.Mode.IsDir() {
		for p := range b.differ {
			if under(p, path) {
				b.differ[p] = nil
			}
		}
		for _, e := range b.before.below(path) {
			b.differ[e.Path] = nil
		}
	}
	b.differ[path] = nil
}

// below returns the entries below a directory.
func (t *Tree) below(dir string) []Entry {
	first := func(prefix string) int {
		i, _ := slices.BinarySearchFunc(t.Entries, prefix, func(e Entry, p string) int { return cmp.Compare(e.Path, p) })
		return i
	}
	return t.Entries[first(dir+"/"):first(dir+"0")] // "0" is what follows "/"
}

// put puts e where nothing stands, in directories.
func (b *treeBuilder) put(e *Entry) {
	b.differ[e.Path] = e
	for p := parentOf(e.Path); p != ""; p = parentOf(p) {
		if up := b.get(p); up == nil || !up.Mode.IsDir() {
			b.differ[p] = &Entry{Path: p, Mode: Dir | 0o755}
		}
	}
}

// restore makes path, and all below, again what it was before, unless something that is no directory stands in the way.
func (b *treeBuilder) restore(path string) {
	e, ok := b.before.Lookup(path)
	if !ok {
		return
	}
	for p := parentOf(path); p != ""; p = parentOf(p) {
		if up := b.get(p); up != nil && !up.Mode.IsDir() {
			return
		}
	}
	b.put(e)
	for p := range b.differ {
		if p != path && under(p, path) {
			delete(b.differ, p)
		}
	}
}

// tree returns what has become of the tree.
func (b *treeBuilder) tree() *Tree {
	t := &Tree{Root: b.before.Root, MTime: b.before.MTime, NotCovered: b.before.NotCovered, Entries: make([]Entry, 0, len(b.before.Entries)+len(b.differ))}
	for i := range b.before.Entries {
		if _, ok := b.differ[b.before.Entries[i].Path]; !ok {
			t.Entries = append(t.Entries, b.before.Entries[i])
		}
	}
	for _, e := range b.differ {
		if e != nil {
			t.Entries = append(t.Entries, *e)
		}
	}
	slices.SortFunc(t.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return t
}
