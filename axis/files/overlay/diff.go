package overlay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// Diff returns what changed since the tree began, as a patch that git apply takes; empty where nothing did. As Git does, it leaves
// out directories and what lies in a .git. It is no input of the program, and is not recorded.
//
// A file of the directory that others changed after the program did is an error that wraps ErrStale: what it was is not known.
func (f *FS) Diff() ([]byte, error) {
	f.mu.RLock()
	all, store, err := f.changes()
	f.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := files.WritePatch(&out, all, store); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ErrStale is wrapped by the refusal to say how a file changed that others have changed too.
var ErrStale = errors.New("it changed in the directory after the program changed it here")

// changes returns what differs from what the tree began as, sorted by path, and the contents. It is called under mu.
func (f *FS) changes() ([]files.Change, *cas.Memory, error) {
	store := cas.NewMemory()
	after := make(map[string]*files.Entry)
	if err := f.collect(f.top, ".", after, store); err != nil {
		return nil, nil, err
	}
	for name := range f.base {
		if after[name] == nil {
			after[name] = nil // it is gone
		}
	}
	var out []files.Change
	for _, name := range slices.Sorted(maps.Keys(after)) {
		before, err := f.beganAs(name, store)
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
func (f *FS) collect(n *node, name string, all map[string]*files.Entry, store cas.Store) error {
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
		if err := f.collect(kid, full, all, store); err != nil {
			return err
		}
	}
	return nil
}

// beganAs returns what stood at a path when the tree began, nil for nothing.
func (f *FS) beganAs(name string, store cas.Store) (*files.Entry, error) {
	l := f.base[name]
	if l.mode == 0 {
		return nil, nil
	}
	e := &files.Entry{Path: name, Mode: l.mode, Target: l.target}
	if !l.mode.IsRegular() {
		return e, nil
	}
	if err := f.fresh(name, &l); err != nil {
		return nil, err
	}
	b, err := f.low.read(name, l)
	if err != nil {
		return nil, fmt.Errorf("overlay: what %s was before the program changed it: %w", name, err)
	}
	e.Size = int64(len(b))
	e.Digest, err = store.Put(b)
	return e, err
}

// fresh refuses a file of the directory that is not what it was.
func (f *FS) fresh(name string, l *look) error {
	d, ok := f.low.(*dirLower)
	if !ok || l.info == nil {
		return nil
	}
	now, err := d.root.Lstat(filepath.FromSlash(name))
	if err == nil && os.SameFile(l.info, now) && sameStamp(l.info, now) {
		return nil
	}
	return fmt.Errorf("overlay: %s: %w", name, cmp.Or(err, ErrStale))
}

// sameStamp compares what tells most writes apart.
func sameStamp(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}
