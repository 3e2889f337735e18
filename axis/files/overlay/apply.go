package overlay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// A Change is what became of one path by something else than the program.
type Change struct {
	Path    string
	Deleted bool        // the file, the link or the whole directory
	Dir     bool        // it is a directory now
	Target  string      // of a symbolic link, else ""
	Content []byte      // of a file
	Perm    fs.FileMode // 0o644 or 0o755, of a file
}

// Apply makes changes true that the process with that number made, and records them, which name it: what is gone first, then what is
// there, each in the order of the paths. What is gone already is none; what comes takes the place of whatever stands there.
func (f *FS) Apply(spawn uint64, changes []Change) error {
	all := slices.Clone(changes)
	slices.SortStableFunc(all, func(a, b Change) int {
		if a.Deleted != b.Deleted {
			return cmp.Compare(boolOf(b.Deleted), boolOf(a.Deleted))
		}
		return strings.Compare(a.Path, b.Path)
	})
	for i := range all {
		if err := f.apply(spawn, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (f *FS) apply(spawn uint64, c *Change) error {
	if err := check("apply", c.Path); err != nil {
		return err
	}
	if c.Path == "." {
		return failure("apply", c.Path, errTop)
	}
	now := f.now()
	f.mu.Lock()
	var done []written
	err := f.clear(c, &done)
	if err == nil && !c.Deleted {
		err = f.bring(c, &done)
	}
	if p, e := f.walk(c.Path, askChange, false); e == nil && p.up != nil {
		p.up.mtime = now
	}
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("overlay: %s, which process %d changed: %w", c.Path, spawn, err)
	}
	if f.rec == nil {
		return nil
	}
	for i := range done {
		done[i].spawn = spawn
	}
	return f.noteWritten(nil, done...)
}

// clear takes away what stands where something else comes, or nothing. It is called under mu.
func (f *FS) clear(c *Change, done *[]written) error {
	p, err := f.walk(c.Path, askChange, false)
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
	return f.clearAll(&p, done)
}

// clearAll takes away what stands at p, and all below it.
func (f *FS) clearAll(p *place, done *[]written) error {
	if !p.mode.IsDir() {
		w := written{path: p.path, was: p.mode}
		if f.rec != nil && p.barred == nil {
			var err error
			if w.before, err = f.contentOf(p); err != nil {
				return err
			}
		}
		*done = append(*done, w)
		return f.drop(p)
	}
	all, err := f.entries(p)
	if err != nil {
		return err
	}
	in := step{p.path, p.up, p.below}
	for _, e := range all {
		kid, err := f.kid(&in, e.name, join(p.path, e.name), askChange)
		if err == nil || kid.barred != nil {
			err = f.clearAll(&kid, done)
		}
		if err != nil {
			return err
		}
		if in.up == nil { // the first that goes makes the directory one of the upper layer
			in.up = f.nodeAt(p.path)
		}
	}
	p.up = in.up
	return f.drop(p)
}

// nodeAt returns what the upper layer has at a path that holds no links.
func (f *FS) nodeAt(name string) *node {
	n := f.top
	for part := range strings.SplitSeq(name, "/") {
		if n = n.kids[part]; n == nil {
			return nil
		}
	}
	return n
}

// bring makes what has come stand at its path. It is called under mu.
func (f *FS) bring(c *Change, done *[]written) error {
	if _, err := f.ensure(path.Dir(c.Path)); err != nil {
		return err
	}
	switch {
	case c.Dir:
		_, err := f.ensure(c.Path)
		return err
	case c.Target != "":
		p, err := f.walk(c.Path, askChange, false)
		if err == nil {
			_, err = f.place(&p, &node{mode: files.Link | 0o777, target: c.Target})
		}
		*done = append(*done, written{path: c.Path, mode: files.Link, data: []byte(c.Target)})
		return err
	}
	p, err := f.walk(c.Path, askChange, false)
	if err != nil {
		return err
	}
	w, err := f.store(&p, c.Content, c.Perm)
	if err == nil && p.mode != 0 && p.up.mode != modeOf(c.Perm) {
		p.up.mode = modeOf(c.Perm)
		w.mode = p.up.mode
	}
	*done = append(*done, w)
	return err
}
