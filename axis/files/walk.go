package files

import (
	"io/fs"
	"os"
	"path/filepath"
)

// A found is one path that a walk met and that a snapshot will hold.
type found struct {
	path string
	info fs.FileInfo
}

// A walker lists what a snapshot of root holds, and what it does not. It runs in one goroutine.
type walker struct {
	root       *os.Root
	exclude    map[string]bool // paths relative to the root
	take       func(found)     // called with each path that the snapshot will hold
	notCovered []NotCovered
}

// recordingsDir is the directory of a work tree in which its recordings lie.
const recordingsDir = ".tapedeck"

// newWalker opens a walk of root. exclude holds absolute paths; rootName is the name by which they know the root.
func newWalker(root *os.Root, rootName string, exclude []string) *walker {
	w := &walker{root: root, exclude: map[string]bool{recordingsDir: true}}
	for _, e := range exclude {
		if rel, ok := relativeTo(rootName, e); ok {
			w.exclude[rel] = true
		}
	}
	return w
}

// relativeTo returns the slash path of target below root, also where one of them goes through a symbolic link.
func relativeTo(root, target string) (string, bool) {
	for _, name := range []string{target, resolved(target)} {
		for _, top := range []string{root, resolved(root)} {
			rel, err := filepath.Rel(top, name)
			if err == nil && rel != "." && filepath.IsLocal(rel) {
				return filepath.ToSlash(rel), true
			}
		}
	}
	return "", false
}

// resolved returns p without symbolic links; what does not exist yet is resolved as far as it does.
func resolved(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	up := filepath.Dir(p)
	if up == p {
		return p
	}
	return filepath.Join(resolved(up), filepath.Base(p))
}

// walk hands everything below the root to take. The error is that of the root itself; what cannot be read further down is
// noted.
func (w *walker) walk(take func(found)) error {
	w.take = take
	names, err := ListDir(w.root, "")
	if err != nil {
		return err
	}
	w.dir("", names, nil)
	return nil
}

// dir visits the entries of one directory. sets are the rules from above.
func (w *walker) dir(dir string, entries []fs.DirEntry, sets []*ruleSet) {
	sets = withRules(sets, w.root, dir)
	for _, e := range entries {
		w.visit(join(dir, e.Name()), e, sets)
	}
}

// visit notes one directory entry, and what lies below it.
func (w *walker) visit(path string, e fs.DirEntry, sets []*ruleSet) {
	switch {
	case w.exclude[path]:
		w.skip(path, Excluded)
		return
	case !inGit(path) && ignores(sets, path, e.IsDir()):
		w.skip(path, Ignored)
		return
	}
	info, err := e.Info()
	if err != nil {
		w.fail(path, err)
		return
	}
	mode, ok := ModeOf(info.Mode())
	if !ok || checkPath(path) != nil { // a socket or device, or no name
		w.skip(path, Special)
		return
	}
	if !mode.IsDir() {
		w.take(found{path, info})
		return
	}
	names, err := ListDir(w.root, path)
	if err != nil {
		w.fail(path, err)
		return
	}
	w.take(found{path, info})
	w.dir(path, names, sets)
}

// fail notes a path that could not be read; one that is gone by now was never there.
func (w *walker) fail(path string, err error) {
	if !isGone(err) {
		w.skip(path, Unreadable)
	}
}

func (w *walker) skip(path string, why Reason) {
	w.notCovered = append(w.notCovered, NotCovered{Path: path, Reason: why})
}
