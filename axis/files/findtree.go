package files

import (
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
