package overlay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A tree is what a program sees: a lower layer, and above it what the run made of it. FS is what the program calls; the methods
// here are called under mu, unless they say otherwise.
type tree struct {
	low     lower // nil of an empty tree
	began   time.Time
	limit   int64 // of all that is written
	maxFile int64
	rec     *tape.Recorder

	mu   sync.RWMutex
	top  *node // guarded by mu, with all below it
	used int64 // of limit; guarded by mu
	// base is what the lower layer had at each path that the run changed, when it first did; guarded by mu. Of what lay below a
	// directory that moved it says nothing.
	base map[string]look
	// due is what Files changed and others came to see; guarded by mu. It is recorded before anything else.
	due []written
}

// nodeCost is what a node counts beside its content, in bytes.
const nodeCost = 512

// A node is what the run made of a path: a file, a directory, a link, or that nothing stands there any more. All fields are guarded
// by tree.mu.
type node struct {
	mode   files.Mode // 0: gone
	data   []byte     // of a file; written in place by Files, so that who reads it copies it
	target string     // of a link
	kids   map[string]*node
	opaque bool // of a directory: what the lower layer has there is not seen

	dir     *node // where it stands; nil of the top, and of what was removed
	name    string
	mtime   time.Time
	opens   int   // Files that hold it
	pending *File // the one whose changes are not recorded yet
}

// size is what n counts.
func (n *node) size() int64 { return nodeCost + int64(len(n.data)) }

// path is where n stands, "" where it was removed.
func (n *node) path(top *node) string {
	if n == top {
		return "."
	}
	if n.dir == nil {
		return ""
	}
	up := n.dir.path(top)
	if up == "" {
		return ""
	}
	return join(up, n.name)
}

// put makes kid what stands at name in n, and returns what stood there.
func (n *node) put(name string, kid *node) (was *node) {
	if n.kids == nil {
		n.kids = make(map[string]*node)
	}
	if was = n.kids[name]; was != nil {
		was.dir = nil
	}
	n.kids[name] = kid
	kid.dir, kid.name = n, name
	return was
}

// seen is what n is to a program.
func (n *node) seen() look { return look{mode: n.mode, size: int64(len(n.data)), target: n.target} }

// changes returns what differs from what the tree began as, sorted by path, and the contents.
func (t *tree) changes() ([]files.Change, *cas.Memory, error) {
	store := cas.NewMemory()
	after := make(map[string]*files.Entry)
	if err := t.collect(t.top, ".", after, store); err != nil {
		return nil, nil, err
	}
	for name := range t.base {
		if after[name] == nil {
			after[name] = nil // it is gone
		}
	}
	var out []files.Change
	for _, name := range slices.Sorted(maps.Keys(after)) {
		before, err := t.beganAs(name, store)
		if err != nil {
			return nil, nil, err
		}
		if !files.SameEntry(before, after[name]) {
			out = append(out, files.Change{Path: name, Before: before, After: after[name]})
		}
	}
	return out, store, nil
}

// collect notes what stands in the directory n of the upper layer, and below.
func (t *tree) collect(n *node, name string, all map[string]*files.Entry, store cas.Store) error {
	for base, kid := range n.kids {
		full := join(name, base)
		if kid.mode == 0 {
			continue
		}
		e := &files.Entry{Path: full, Mode: kid.mode, Target: kid.target}
		if kid.mode.IsRegular() {
			d, err := store.Put(kid.data)
			if err != nil {
				return err
			}
			e.Digest, e.Size = d, int64(len(kid.data))
		}
		all[full] = e
		if err := t.collect(kid, full, all, store); err != nil {
			return err
		}
	}
	return nil
}

// beganAs returns what stood at a path when the tree began, nil for nothing.
func (t *tree) beganAs(name string, store cas.Store) (*files.Entry, error) {
	l := t.base[name]
	if l.mode == 0 {
		return nil, nil
	}
	e := &files.Entry{Path: name, Mode: l.mode, Target: l.target}
	if !l.mode.IsRegular() {
		return e, nil
	}
	if err := t.fresh(name, &l); err != nil {
		return nil, err
	}
	b, err := t.low.read(name, l)
	if err != nil {
		return nil, fmt.Errorf("overlay: what %s was before the program changed it: %w", name, err)
	}
	e.Size = int64(len(b))
	e.Digest, err = store.Put(b)
	return e, err
}

// fresh refuses a file of the directory that is not what it was.
func (t *tree) fresh(name string, l *look) error {
	d, ok := t.low.(*dirLower)
	if !ok || l.info == nil {
		return nil
	}
	now, err := d.root.Lstat(filepath.FromSlash(name))
	was := l.info // size, time and mode tell most writes apart
	if err == nil && os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime()) && was.Mode() == now.Mode() {
		return nil
	}
	return fmt.Errorf("overlay: %s: %w", name, cmp.Or(err, ErrStale))
}

// grow counts n bytes more, of which some may be taken back by a negative n.
func (t *tree) grow(n int64) error {
	if n > 0 && n > t.limit-t.used {
		return &reason{errno: syscall.ENOSPC, text: fmt.Sprintf("what was written holds more than the limit of %d bytes: raise Options.MaxBytes", t.limit), own: true}
	}
	t.used += n
	return nil
}

// readAt returns a copy of the content at name.
func (t *tree) readAt(name string) (place, []byte, error) {
	p, err := t.walk(name, askRead, true)
	switch {
	case err != nil:
		return p, nil, err
	case p.mode == 0:
		return p, nil, errNone
	case p.mode.IsDir():
		return p, nil, errIsDir
	}
	b, err := t.contentOf(&p)
	return p, b, err
}

// contentOf returns a copy of the content of the file or link p, never nil.
func (t *tree) contentOf(p *place) ([]byte, error) {
	switch {
	case p.mode.IsLink():
		return []byte(p.target), nil
	case p.up != nil:
		return cloned(p.up.data), nil
	}
	b, err := t.low.read(p.path, p.look)
	var why *reason
	if errors.As(err, &why) {
		return nil, p.bar(why)
	}
	return b, err
}

// listAt returns what stands in the directory at name.
func (t *tree) listAt(name string) (place, []entry, error) {
	p, err := t.walk(name, askList, true)
	switch {
	case err != nil:
		return p, nil, err
	case p.mode == 0:
		return p, nil, errNone
	case !p.mode.IsDir():
		return p, nil, errNoDir
	}
	all, err := t.entries(&p)
	return p, all, err
}

// entries returns what stands in the directory p, sorted.
func (t *tree) entries(p *place) ([]entry, error) {
	var out []entry
	if p.below {
		all, err := t.low.list(p.path, p.look)
		var why *reason
		if errors.As(err, &why) {
			return nil, p.bar(why)
		}
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			if p.up == nil || p.up.kids[e.name] == nil {
				out = append(out, e)
			}
		}
	}
	if p.up != nil {
		for name, kid := range p.up.kids {
			if kid.mode != 0 {
				out = append(out, entry{name, kid.mode})
			}
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

func (t *tree) infoOf(name string, p *place) *info {
	i := &info{path.Base(name), p.mode, p.size, t.began}
	if p.up != nil && !p.up.mtime.IsZero() {
		i.mtime = p.up.mtime
	}
	return i
}

// cloned is a copy of b that is never nil.
func cloned(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// flush has what h changed be recorded next: when it is closed, or when somebody else comes to the file, so that the order on the
// tape is the order in which things were seen.
func (t *tree) flush(h *File) {
	if !h.dirty {
		return
	}
	h.dirty, h.n.pending = false, nil
	if name := h.n.path(t.top); t.rec != nil && name != "" {
		t.due = append(t.due, written{path: name, mode: h.n.mode, data: cloned(h.n.data), before: h.before})
	}
	h.before = nil
}

// put makes n stand at name, where nothing does.
func (t *tree) put(name string, a ask, n *node) (place, error) {
	p, err := t.walk(name, a, false)
	if err == nil && p.mode != 0 {
		err = errThere
	}
	if err == nil {
		err = t.place(&p, n)
	}
	return p, err
}

// modeOf is the mode of a new file.
func modeOf(perm fs.FileMode) files.Mode {
	if perm&0o100 != 0 {
		return files.Regular | 0o755
	}
	return files.Regular | 0o644
}

// reach goes to a path that is to be written, and makes the directories above it.
func (t *tree) reach(name string) (place, error) {
	p, err := t.walk(name, askChange, true)
	if p.missing == "" {
		return p, err
	}
	links, whole := p.links, p.missing
	if _, err := t.ensure(path.Dir(whole)); err != nil {
		return p, err
	}
	p, err = t.walk(whole, askChange, true)
	p.links = append(links, p.links...)
	return p, err
}

// ensure makes the directory at dir, which has no links on its way, be in the upper layer, and those above it. Nothing else than
// directories stands on the way.
func (t *tree) ensure(dir string) (*node, error) {
	at, cur := t.top, step{".", t.top, t.low != nil}
	if dir == "." {
		return at, nil
	}
	for i := 0; i < len(dir); {
		end := len(dir)
		if n := strings.IndexByte(dir[i:], '/'); n >= 0 {
			end = i + n
		}
		p, err := t.kid(&cur, dir[i:end], dir[:end], askWalk)
		if err != nil {
			return nil, err
		}
		if p.up == nil || p.mode == 0 {
			n := &node{mode: files.Dir | 0o755, opaque: p.mode == 0, mtime: t.began}
			if err := t.grow(nodeCost); err != nil {
				return nil, err
			}
			t.found(&p)
			t.release(at.put(dir[i:end], n))
			p.up, p.below = n, p.below && !n.opaque
		}
		at, cur = p.up, step{p.path, p.up, p.below}
		i = end + 1
	}
	return at, nil
}

// place makes n stand at p, in the place of what stands there.
func (t *tree) place(p *place, n *node) error {
	dir, err := t.ensure(path.Dir(p.path))
	if err != nil {
		return err
	}
	if err := t.grow(n.size()); err != nil {
		return err
	}
	t.found(p)
	n.mtime = t.began
	t.release(dir.put(path.Base(p.path), n))
	p.up = n
	return nil
}

// found keeps what the lower layer has at a path that is changed for the first time.
func (t *tree) found(p *place) {
	if _, ok := t.base[p.path]; !ok && p.up == nil {
		t.base[p.path] = p.look
	}
}

// release gives back what a node counted that stands nowhere any more, and all below it: at once, or when the last File of it is
// closed.
func (t *tree) release(n *node) {
	if n == nil {
		return
	}
	n.dir = nil
	if n.opens == 0 {
		t.used -= n.size()
	}
	for _, kid := range n.kids {
		t.release(kid)
	}
}

// store makes b the content of p.
func (t *tree) store(p *place, b []byte, perm fs.FileMode) (w written, err error) {
	if err := t.writable(p, int64(len(b))); err != nil {
		return w, err
	}
	w = written{path: p.path, mode: p.mode, data: b}
	if p.mode == 0 {
		w.mode = modeOf(perm)
	} else if t.rec != nil {
		if w.before, err = t.contentOf(p); err != nil {
			return w, err
		}
	}
	if p.up != nil && p.mode != 0 {
		if err := t.grow(int64(len(b) - len(p.up.data))); err != nil {
			return w, err
		}
		p.up.data = cloned(b)
		return w, nil
	}
	err = t.place(p, &node{mode: w.mode, data: cloned(b)})
	return w, err
}

// writable refuses what cannot become a file of n bytes.
func (t *tree) writable(p *place, n int64) error {
	switch {
	case p.mode.IsDir():
		return errIsDir
	case n > t.maxFile:
		return tooMuch(t.maxFile)
	case p.mode.IsRegular() && p.up == nil && p.size > t.maxFile:
		return p.bar(tooLong(t.maxFile))
	}
	return nil
}

// lift brings the file p, which the lower layer has, into the upper one.
func (t *tree) lift(p *place) error {
	if p.up != nil {
		return nil
	}
	data, err := t.contentOf(p)
	if err != nil {
		return err
	}
	return t.place(p, &node{mode: p.mode, data: data})
}

// drop makes nothing stand at p. Where the lower layer is seen around it that is kept for ever: what the lower layer has there now,
// or a tape says, is not what the program left.
func (t *tree) drop(p *place) error {
	if p.up != nil && !p.over {
		delete(p.up.dir.kids, path.Base(p.path))
		t.release(p.up)
		return nil
	}
	was := *p // whose node place replaces
	return t.place(&was, &node{})
}

// clear takes away what stands where something else comes, or nothing.
func (t *tree) clear(c *Change, done *[]written) error {
	p, err := t.walk(c.Path, askChange, false)
	if errors.Is(err, errNone) {
		return nil
	}
	if err != nil && p.barred == nil {
		return err
	}
	file := !c.Deleted && !c.Dir && c.Target == ""
	if p.mode == 0 && p.barred == nil || p.mode.IsDir() && c.Dir || p.mode.IsRegular() && file {
		return nil
	}
	return t.clearAll(&p, done)
}

// clearAll takes away what stands at p, and all below it.
func (t *tree) clearAll(p *place, done *[]written) error {
	if !p.mode.IsDir() {
		w := written{path: p.path, was: p.mode}
		if t.rec != nil && p.barred == nil {
			var err error
			if w.before, err = t.contentOf(p); err != nil {
				return err
			}
		}
		*done = append(*done, w)
		return t.drop(p)
	}
	all, err := t.entries(p)
	if err != nil {
		return err
	}
	in := step{p.path, p.up, p.below}
	for _, e := range all {
		kid, err := t.kid(&in, e.name, join(p.path, e.name), askChange)
		if err == nil || kid.barred != nil {
			err = t.clearAll(&kid, done)
		}
		if err != nil {
			return err
		}
		if in.up == nil { // the first that goes makes the directory one of the upper layer
			in.up = t.nodeAt(p.path)
		}
	}
	p.up = in.up
	return t.drop(p)
}

// nodeAt returns what the upper layer has at a path that holds no links.
func (t *tree) nodeAt(name string) *node {
	n := t.top
	for part := range strings.SplitSeq(name, "/") {
		if n = n.kids[part]; n == nil {
			return nil
		}
	}
	return n
}

// bring makes what has come stand at its path.
func (t *tree) bring(c *Change, done *[]written) error {
	if _, err := t.ensure(path.Dir(c.Path)); err != nil {
		return err
	}
	switch {
	case c.Dir:
		_, err := t.ensure(c.Path)
		return err
	case c.Target != "":
		p, err := t.walk(c.Path, askChange, false)
		if err == nil {
			err = t.place(&p, &node{mode: files.Link | 0o777, target: c.Target})
		}
		*done = append(*done, written{path: c.Path, mode: files.Link, data: []byte(c.Target)})
		return err
	}
	p, err := t.walk(c.Path, askChange, false)
	if err != nil {
		return err
	}
	w, err := t.store(&p, c.Content, c.Perm)
	if err == nil && p.mode != 0 && p.up.mode != modeOf(c.Perm) {
		p.up.mode = modeOf(c.Perm)
		w.mode = p.up.mode
	}
	*done = append(*done, w)
	return err
}
