package files

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A JournalRoot is a directory whose paths a Journal keeps.
type JournalRoot struct {
	// Dir is the absolute path by which the program knows it, without symbolic links.
	Dir string
	// Prefix stands before the paths of its records: "" for the work tree, "~/" for HOME, "$TMP/" for the temporary
	// directory, Dir+"/" for others.
	Prefix string
	// Root is what the program sees at Dir. The caller keeps it open as long as the journal is used.
	Root *os.Root
	// Tree is the snapshot of a work tree from before the run; nil where none was taken. What it does not cover is kept as in
	// other roots, and its records are marked as ignored.
	Tree *Tree
	// TreeAt is when that snapshot began. A file that was last changed well before it is not read to know that it is still as
	// the snapshot says; with the zero time each is.
	TreeAt time.Time
}

// JournalOptions says how a journal keeps what it is told of. Nil and zero work.
type JournalOptions struct {
	Store    cas.Store // takes what the run found; nil takes digests only
	Staged   cas.Store // takes what the run made of it, and has what Store has: a Staging in front of it; nil is Store
	Scrubber Scrubber  // as in SnapOptions
	// MaxFileSize is the length in bytes of the longest file that is kept; 0 is DefaultMaxFileSize.
	MaxFileSize int64
	// By names who made a change, of those whom Touch.By numbers: a record has it as its further key "conversation". 0, and a nil
	// By, say nothing.
	By func(by uint32) uint64
	// Exclude lists absolute paths that are never kept, with what lies below.
	Exclude []string
}

// A Touch is a call that may change files, about to be carried out.
type Touch struct {
	Rename   bool   // Paths are the old and the new name
	Exchange bool   // Paths change places
	Link     bool   // Paths are the old and the new name
	Ends     bool   // what stands at the last of Paths ends: it is cut, deleted or replaced
	By       uint32 // who makes the call, as JournalOptions.By knows it; 0 for the program itself
	Paths    []TouchedPath
}

// A TouchedPath is a path of a call.
type TouchedPath struct {
	Path string // absolute and clean, no symbolic link in it but perhaps the last name
	Dir  int    // open descriptor of the directory that holds it; negative where there is none
	Name string // in Dir
}

// A Journal keeps what a run changes in files, from before the first change: the pre-image of each path that a call names,
// and at each barrier what became of it. See the package comment for what it sees.
//
// All methods may be called by several goroutines at once, but of Barrier, BarrierOf and End one at a time. It holds one descriptor of each root until Close.
type Journal struct {
	o       JournalOptions
	roots   []*journalRoot // as given
	lookup  []*journalRoot // the most specific first
	exclude []string
	began   time.Time
	final   bool // End is called: of the one goroutine that is in Barrier or End, and of those that it starts

	mu     sync.Mutex
	lost   map[*node]Reason // whose pre-image is not kept; guarded by mu
	left   map[*node]Reason // of which what stands there is not kept; guarded by mu
	linked map[*node]bool   // that were changed while they had names that are not known; guarded by mu
	long   map[*node]string // what stands at the end where that is too large to keep; guarded by mu
	ended  []*item          // states that a call ended since the last barrier; guarded by mu
}

// A journalRoot is a root and what is known of the paths below.
type journalRoot struct {
	JournalRoot
	top   folder
	err   error // the root cannot be looked into: nothing below is covered
	node  *node // guarded by Journal.mu, with all below
	rules *rulesAbove
	rec   recorder
	said  *treeBuilder // what the records so far make of Tree; nil without one. Of the one goroutine that is in Barrier or End
	after *Tree        // of End
	going []string     // directories that Redo deletes once they are empty
}

// NewJournal begins a journal of roots, before the program runs. A path belongs to the most specific root that holds it;
// paths outside of all are passed over.
func NewJournal(roots []JournalRoot, o *JournalOptions) *Journal {
	j := &Journal{lost: make(map[*node]Reason), left: make(map[*node]Reason), linked: make(map[*node]bool), long: make(map[*node]string), began: time.Now()}
	if o != nil {
		j.o = *o
	}
	if j.o.Staged == nil {
		j.o.Staged = j.o.Store
	}
	if j.o.MaxFileSize <= 0 {
		j.o.MaxFileSize = DefaultMaxFileSize
	}
	for _, e := range j.o.Exclude {
		j.exclude = append(j.exclude, e, resolved(e))
	}
	slices.Sort(j.exclude)
	j.exclude = slices.Compact(j.exclude)
	for _, r := range roots {
		j.addRoot(r)
	}
	j.lookup = slices.Clone(j.roots)
	slices.SortStableFunc(j.lookup, func(a, b *journalRoot) int { return cmp.Compare(len(b.Dir), len(a.Dir)) })
	return j
}

func (j *Journal) addRoot(r JournalRoot) {
	root := &journalRoot{JournalRoot: r, rec: recorder{store: j.o.Staged, prefix: r.Prefix}, rules: &rulesAbove{root: r.Root}}
	root.node = &node{root: root, state: isKnown, start: &Entry{Mode: Dir | 0o755}, last: &Entry{Mode: Dir | 0o755}}
	root.top, root.err = topFolder(r.Root)
	if r.Tree != nil {
		j.exclude = append(j.exclude, r.Dir+"/"+recordingsDir)
		root.said = newTreeBuilder(r.Tree, j.o.Staged)
	}
	j.roots = append(j.roots, root)
}

// find returns the node of an absolute path, which it makes; nil where the path is none of the journal's.
func (j *Journal) find(path string) *node {
	for _, r := range j.lookup {
		if !under(path, r.Dir) {
			continue
		}
		if len(path) <= len(r.Dir)+1 || j.isExcluded(path) {
			return nil
		}
		return r.node.reach(path[len(r.Dir)+1:])
	}
	return nil
}

func (j *Journal) isExcluded(path string) bool {
	return slices.ContainsFunc(j.exclude, func(e string) bool { return under(path, e) })
}

// NotCovered returns what the journal could not keep, by the paths of records, sorted: what stood there before the run, or
// stands there now.
func (j *Journal) NotCovered() []NotCovered {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []NotCovered
	add := func(n *node, why Reason) {
		path := n.root.rec.place(n.path())
		if j.o.Scrubber != nil {
			b, _ := j.o.Scrubber.Bytes([]byte(path))
			path = string(b)
		}
		out = append(out, NotCovered{Path: path, Reason: why})
	}
	for n, why := range j.lost {
		add(n, why)
	}
	for n, why := range j.left {
		if j.lost[n] != why {
			add(n, why)
		}
	}
	for n := range j.linked {
		add(n, Linked)
	}
	for _, r := range j.roots {
		if r.err != nil {
			out = append(out, NotCovered{Path: strings.TrimSuffix(r.rec.place(""), "/"), Reason: Unreadable})
		}
	}
	slices.SortFunc(out, func(a, b NotCovered) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(out)
}

// Close lets go of the roots. No other method may be called after it, or run meanwhile.
func (j *Journal) Close() {
	for _, r := range j.roots {
		r.top.letGo()
	}
}

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
	if n.start.Mode.IsDir() && f.below(n, path) {
		wanted = true
	}
	if n.start.Mode.IsDir() && n.is(isMoved) && !n.is(losesBelow) {
		f.t.Moved = append(f.t.Moved, path)
	}
	if wanted {
		e := *n.start
		e.Path = path
		f.t.Entries = append(f.t.Entries, e)
	}
	return wanted
}

// wants reports whether a path is not the snapshot's to tell of.
func (f *finder) wants(n *node, path string) bool {
	return f.r.Tree == nil || n.is(isIgnored) || !f.r.Tree.Covers(path)
}

// read returns what the journal read of the file at path below the root dir, where that is sure to be what stands there: it has
// the stamp that it had then, and whoever changed it since would have changed that. A nil journal read nothing.
func (j *Journal) read(dir, path string, s stamp) (c cached, ok bool) {
	if j == nil {
		return c, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.roots {
		if r.Dir != dir {
			continue
		}
		n := r.node.lookup(path)
		if n == nil || !n.is(isSure) || n.stamp == nil || *n.stamp != s || n.last == nil || !n.last.Mode.IsRegular() {
			return c, false
		}
		return cached{stamp: s, digest: n.last.Digest, size: n.last.Size, secret: n.last.Secret}, true
	}
	return c, false
}

// maxLong is how many bytes of a file that is too large to keep are read for its digest. A sparse one may have any length.
const maxLong = 4 << 30

// long says what a file is that is too large to keep: how many bytes it has, its mode, and their keyed digest. What cannot be read has none.
func long(f io.Reader, now *sight, s Scrubber) string {
	said := fmt.Sprintf("%d bytes, %s", now.size, now.mode)
	if s == nil || now.size > maxLong {
		return said
	}
	h := blake3.New()
	if _, err := io.Copy(h, io.LimitReader(f, now.size)); err != nil {
		return said
	}
	return said + ", " + s.KeyedDigest(h.Sum(nil))
}

// Long returns what stood in the end at the paths that a call named, by the paths of records, where that was too large to keep.
func (j *Journal) Long() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[string]string, len(j.long))
	for n, said := range j.long {
		out[n.root.rec.place(n.path())] = said
	}
	return out
}

// HideLate brings what the journal keeps into the form that it would have if what became known since had been known before, as
// the function HideLate does with trees, and returns how much changed. It is called when the program has ended, before End.
func (j *Journal) HideLate(o *LateOptions) (changed int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []*Entry
	for _, r := range j.roots {
		r.node.each(func(n *node) { all = append(all, n.start, n.last) })
		if r.said == nil {
			continue
		}
		for _, e := range r.said.differ {
			all = append(all, e)
		}
	}
	for _, it := range j.ended {
		all = append(all, it.now)
	}
	return o.hideEntries(all)
}

// Redo makes the change of which a file_write or file_delete of another run tells, in the place of whoever made it then, and counts
// it as touched by o.By. Directories that lead to a file are made. It may run beside Touch, Barrier and what the program does.
//
// Errors: ErrNotRedone, those of Touch, which end the run, and those of the blobs.
func (j *Journal) Redo(rec *tape.Record, o *RedoOptions) error {
	f := tape.ChangedFile(rec.Kind)
	if f == nil {
		return fmt.Errorf("%w: a %s changes no file", ErrNotRedone, rec.Kind.Name())
	}
	root, rel := j.placed(truePath(rec, f))
	if root == nil || checkPath(rel) != nil {
		return fmt.Errorf("%w: %s lies in no directory that is followed", ErrNotRedone, f.Path)
	}
	then := j.Touch(&Touch{By: o.By, Paths: []TouchedPath{{Path: root.Dir + "/" + rel, Dir: -1, Name: baseOf(rel)}}})
	if then != nil {
		if err := then(); err != nil {
			return err
		}
	}
	if rec.Kind.Name() == "file_delete" {
		return notRedone(f, root.deleted(rel, f.IsPlace()))
	}
	if f.Content == nil {
		return notRedone(f, errNoContent)
	}
	e, err := newTreeBuilder(new(Tree), o.Store).entry(rel, f)
	if err != nil {
		return notRedone(f, err)
	}
	return notRedone(f, root.written(e, f, o))
}

// placed finds the root of a record's path, and the path below it: that of the longest prefix.
func (j *Journal) placed(path string) (best *journalRoot, rel string) {
	if !elsewhere(path) {
		path = strings.TrimPrefix(path, "./")
	}
	for _, r := range j.roots {
		if (r.Prefix == "") == elsewhere(path) || r.err != nil {
			continue
		}
		if below, ok := strings.CutPrefix(path, r.Prefix); ok && (best == nil || len(r.Prefix) > len(best.Prefix)) {
			best, rel = r, below
		}
	}
	return best, rel
}

// inTree returns the file that the snapshot from before the run has at path. It is sure that it stands there as it is in
// the snapshot where it has not changed since that began: nobody sets the time of the last change.
func (r *journalRoot) inTree(path string, s *sight) (e *Entry, sure bool) {
	if e = r.Tree.at(path); e == nil || !e.Mode.IsRegular() {
		return nil, false
	}
	sure = !r.TreeAt.IsZero() && s.ctime < r.TreeAt.Add(-racyWindow).UnixNano() && s.mode == e.Mode
	return e, sure && (e.Secret != "" || s.size == e.Size)
}

// saysAsFound reports whether the records so far leave of a path what the snapshot from before the run has there.
func (r *journalRoot) saysAsFound(path string) bool {
	return SameEntry(r.said.get(path), r.Tree.at(path))
}
