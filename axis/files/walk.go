package files

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

// FindTree names the work tree of a run whose working directory is dir: the top of the Git checkout that holds dir, else
// dir itself, with symbolic links resolved. No snapshot is taken where that is home or a directory above it: ok is then
// false and why says so in words. An empty home counts as none.
func FindTree(dir, home string) (root string, ok bool, why string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false, "the working directory has no name: " + err.Error()
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return "", false, "the working directory cannot be resolved: " + err.Error()
	}
	root = checkoutTop(abs)
	if why := tooWide(root, home); why != "" {
		return root, false, why
	}
	return root, true, ""
}

// checkoutTop returns the nearest directory at or above dir that holds a .git, else dir.
func checkoutTop(dir string) string {
	for d := dir; ; {
		if isCheckout(d) {
			return d
		}
		up := filepath.Dir(d)
		if up == d {
			return dir
		}
		d = up
	}
}

// isCheckout reports whether d holds a repository, or the file of a linked work tree or submodule. A bare directory named
// .git is none: Git itself walks past it.
func isCheckout(d string) bool {
	info, err := os.Stat(filepath.Join(d, ".git"))
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return info.Mode().IsRegular()
	}
	_, err = os.Lstat(filepath.Join(d, ".git", "HEAD"))
	return err == nil
}

// tooWide says why root is no work tree to copy, "" where it is one.
func tooWide(root, home string) string {
	if filepath.Dir(root) == root {
		return "the work tree would be the whole file system (" + root + ")"
	}
	if home == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	rel, err := filepath.Rel(root, home)
	switch {
	case err != nil || !filepath.IsLocal(rel):
		return ""
	case rel == ".":
		return "the work tree would be the home directory (" + root + ")"
	}
	return "the work tree would hold the home directory (" + root + ")"
}

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
	maps.Copy(w.exclude, below(rootName, exclude))
	return w
}

// below are those of paths that lie below the root called rootName, as paths from there.
func below(rootName string, paths []string) map[string]bool {
	rels := make(map[string]bool)
	tops, links := []string{rootName, resolved(rootName)}, make(links)
	for _, p := range paths {
		if rel, ok := relativeTo(tops, p, links.resolved(p)); ok {
			rels[rel] = true
		}
	}
	return rels
}

// relativeTo returns the slash path of a target below a root, where each has several names.
func relativeTo(tops []string, names ...string) (string, bool) {
	for _, name := range names {
		for _, top := range tops {
			rel, err := filepath.Rel(top, name)
			if err == nil && rel != "." && filepath.IsLocal(rel) {
				return filepath.ToSlash(rel), true
			}
		}
	}
	return "", false
}

// links are directories without symbolic links, by their names: of many paths most lie in the same few.
type links map[string]string

// resolved is what the function is, of one path among many.
func (l links) resolved(p string) string {
	dir := filepath.Dir(p)
	if _, ok := l[dir]; !ok {
		l[dir] = resolved(dir)
	}
	real := filepath.Join(l[dir], filepath.Base(p))
	if info, err := os.Lstat(real); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return resolved(real)
	}
	return real
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
	w.dir("", names, rulesIn{})
	return nil
}

// dir visits the entries of one directory, for which above holds.
func (w *walker) dir(dir string, entries []fs.DirEntry, above rulesIn) {
	rules := above.below(w.root, dir)
	for _, e := range entries {
		w.visit(join(dir, e.Name()), e, rules)
	}
}

// visit notes one directory entry, and what lies below it.
func (w *walker) visit(path string, e fs.DirEntry, rules rulesIn) {
	switch {
	case w.exclude[path]:
		w.skip(path, Excluded)
		return
	case rules.ignores(path, e.IsDir()):
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
	w.dir(path, names, rules)
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
