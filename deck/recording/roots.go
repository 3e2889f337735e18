package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// FindRoots finds the work tree of dir, HOME and the temporary directory of a program with env. tree may be empty. why
// says why no snapshot can be taken, and is empty where one can.
func FindRoots(dir, tree string, env []string) (r Roots, why string, err error) {
	r.Home = Resolved(Getenv(env, "HOME"))
	r.Temp = Resolved(Getenv(env, "TMPDIR"))
	if r.Temp == "" {
		r.Temp = Resolved(os.TempDir())
	}
	for _, root := range []string{r.Home, r.Temp} {
		if root != "" && !IsDir(root) && !slices.Contains(r.Absent, root) {
			r.Absent = append(r.Absent, root)
		}
	}
	start := dir
	if tree != "" {
		if start, err = filepath.Abs(tree); err != nil {
			return r, "", err
		}
		if !IsDir(start) {
			return r, "", fmt.Errorf("--tree %s: no such directory", tree)
		}
		r.Tree = Resolved(start)
		if Within(r.Home, r.Tree) {
			why = r.Tree + " holds HOME: no snapshot of the work tree"
			r.Tree = ""
		}
		return r, why, nil
	}
	root, ok, why := files.FindTree(start, r.Home)
	if ok {
		r.Tree = root
	}
	return r, why, nil
}

// Resolved returns the absolute path without symbolic links, as far as it exists; "" stays "".
func Resolved(path string) string {
	if path == "" || !filepath.IsAbs(path) {
		return ""
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// Within reports whether path is dir or lies in it. Both are absolute and clean.
func Within(path, dir string) bool {
	if dir == "" {
		return false
	}
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// TapePath spells an absolute path as a tape does: relative to the work tree, ~/…, $TMP/…, else absolute. A path takes
// its most specific root.
func (r *Roots) TapePath(path string) string {
	best, prefix := "", ""
	for _, c := range []struct{ root, prefix string }{{r.Tree, ""}, {r.Home, "~"}, {r.Temp, "$TMP"}} {
		if c.root != "" && !slices.Contains(r.Absent, c.root) && Within(path, c.root) && (best == "" || len(c.root) > len(best)) {
			best, prefix = c.root, c.prefix
		}
	}
	if best == "" {
		return path
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(path, best), "/")
	switch {
	case prefix == "" && rel == "":
		return "."
	case prefix == "":
		return rel
	case rel == "":
		return prefix
	}
	return prefix + "/" + rel
}

// Writable returns the directories that the program may change: those of the roots that exist, the system's temporary
// directory, which programs use whatever TMPDIR says, and extra. None is listed that lies in another.
func (r *Roots) Writable(extra []string) []string {
	all := append([]string{r.Tree, r.Home, r.Temp, "/tmp"}, extra...)
	var out []string
	for _, p := range all {
		if p = Resolved(p); p == "" || p == "/" || slices.Contains(out, p) || slices.Contains(r.Absent, p) {
			continue
		}
		if IsDir(p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// Getenv returns the value of name in env, the last one winning as it does for execve's readers in Go and the shells.
func Getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// WorkingDir returns dir, or the process's own, absolute and without symbolic links: what the program sees of its
// directory must be a path that the jail has.
func WorkingDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir) // of "" it is the working directory
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// LibraryRoot is the directory whose library takes recordings made in dir: the work tree, or dir itself where there is
// none.
func (r *Roots) LibraryRoot(dir string) string {
	if r.Tree == "" {
		return dir
	}
	return r.Tree
}

// Watched spells paths as a tape does: ~/… and $TMP/… stay, others are absolute or seen from the directory cwd. Each may be a
// pattern of path.Match.
func (r *Roots) Watched(cwd string, list []string) []string {
	var out []string
	for _, p := range list {
		if !isRooted(p) {
			if !filepath.IsAbs(p) {
				p = filepath.Join(cwd, p)
			}
			p = r.TapePath(filepath.Clean(p))
		}
		out = append(out, p)
	}
	return out
}

func isRooted(p string) bool {
	for _, root := range []string{"~", "$TMP"} {
		if p == root || strings.HasPrefix(p, root+"/") {
			return true
		}
	}
	return false
}

// SeesOutside reports whether a recording knows what changed outside its work tree.
func (m *Manifest) SeesOutside() bool { return !slices.Contains(m.Axes["files"].NotCovered, GapFiles) }

// Unwatchable says of each path that the snapshot tree, which may be nil, does not cover that what changed there cannot be
// compared.
func Unwatchable(paths []string, tree *files.Tree) []string {
	var out []string
	for _, p := range paths {
		if inTree := !isRooted(p) && !filepath.IsAbs(p) && tree != nil; inTree && tree.Covers(p) && !strings.ContainsAny(p, "*?[") {
			continue
		}
		out = append(out, fmt.Sprintf("--watch %s: what changes outside the work tree, or is ignored there, is seen in the jail alone, and "+
			"one of the two runs was not there (record or replay it again)", p))
	}
	return out
}
