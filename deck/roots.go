package deck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// findRoots finds the work tree of dir, HOME and the temporary directory of a program with env. tree may be empty. why
// says why no snapshot can be taken, and is empty where one can.
func findRoots(dir, tree string, env []string) (r Roots, why string, err error) {
	r.Home = resolved(getenv(env, "HOME"))
	r.Temp = resolved(getenv(env, "TMPDIR"))
	if r.Temp == "" {
		r.Temp = resolved(os.TempDir())
	}
	for _, root := range []string{r.Home, r.Temp} {
		if root != "" && !isDir(root) && !slices.Contains(r.Absent, root) {
			r.Absent = append(r.Absent, root)
		}
	}
	start := dir
	if tree != "" {
		if start, err = filepath.Abs(tree); err != nil {
			return r, "", err
		}
		if !isDir(start) {
			return r, "", fmt.Errorf("--tree %s: no such directory", tree)
		}
		r.Tree = resolved(start)
		if within(r.Home, r.Tree) {
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

// resolved returns the absolute path without symbolic links, as far as it exists; "" stays "".
func resolved(path string) string {
	if path == "" || !filepath.IsAbs(path) {
		return ""
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// within reports whether path is dir or lies in it. Both are absolute and clean.
func within(path, dir string) bool {
	if dir == "" {
		return false
	}
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// tapePath spells an absolute path as a tape does: relative to the work tree, ~/…, $TMP/…, else absolute. A path takes
// its most specific root.
func (r *Roots) tapePath(path string) string {
	best, prefix := "", ""
	for _, c := range []struct{ root, prefix string }{{r.Tree, ""}, {r.Home, "~"}, {r.Temp, "$TMP"}} {
		if c.root != "" && !slices.Contains(r.Absent, c.root) && within(path, c.root) && (best == "" || len(c.root) > len(best)) {
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

// writable returns the directories that the program may change: those of the roots that exist, the system's temporary
// directory, which programs use whatever TMPDIR says, and extra. None is listed that lies in another.
func (r *Roots) writable(extra []string) []string {
	all := append([]string{r.Tree, r.Home, r.Temp, "/tmp"}, extra...)
	var out []string
	for _, p := range all {
		if p = resolved(p); p == "" || p == "/" || slices.Contains(out, p) || slices.Contains(r.Absent, p) {
			continue
		}
		if isDir(p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// getenv returns the value of name in env, the last one winning as it does for execve's readers in Go and the shells.
func getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// workingDir returns dir, or the process's own, absolute and without symbolic links: what the program sees of its
// directory must be a path that the jail has.
func workingDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir) // of "" it is the working directory
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// libraryRoot is the directory whose library takes recordings made in dir: the work tree, or dir itself where there is
// none.
func (r *Roots) libraryRoot(dir string) string {
	if r.Tree == "" {
		return dir
	}
	return r.Tree
}

// watched spells paths as a tape does: ~/… and $TMP/… stay, others are absolute or seen from the directory cwd. Each may be a
// pattern of path.Match.
func (r *Roots) watched(cwd string, list []string) []string {
	var out []string
	for _, p := range list {
		if !isRooted(p) {
			if !filepath.IsAbs(p) {
				p = filepath.Join(cwd, p)
			}
			p = r.tapePath(filepath.Clean(p))
		}
		out = append(out, p)
	}
	return out
}

// isRooted reports whether a path begins with the name of a root, as on a tape.
func isRooted(p string) bool {
	for _, root := range []string{"~", "$TMP"} {
		if p == root || strings.HasPrefix(p, root+"/") {
			return true
		}
	}
	return false
}

// seesOutside reports whether a recording knows what changed outside its work tree.
func (m *Manifest) seesOutside() bool { return !slices.Contains(m.Axes["files"].NotCovered, gapFiles) }

// unwatchable says of each path that the snapshot tree, which may be nil, does not cover that what changed there cannot be
// compared.
func unwatchable(paths []string, tree *files.Tree) []string {
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
