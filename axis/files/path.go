package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Limits on names, in bytes: those of Linux.
const (
	maxPathLen = 4096
	maxNameLen = 255
)

// ErrPath is wrapped by every refusal of a path that came with data: absolute, empty, too long, with "." or "..", with
// a NUL, or not local on this system.
var ErrPath = errors.New("not a clean relative path")

// checkPath refuses a path that could name something outside a root, or one thing in two ways.
func checkPath(p string) error {
	if p == "" || len(p) > maxPathLen || strings.IndexByte(p, 0) >= 0 {
		return fmt.Errorf("files: path %.80q: %w", p, ErrPath)
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == "" || name == "." || name == ".." || len(name) > maxNameLen {
			return fmt.Errorf("files: path %.80q: %w", p, ErrPath)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(p)) {
		return fmt.Errorf("files: path %.80q: %w", p, ErrPath)
	}
	return nil
}

// parentOf returns the directory that holds p, "" for the root.
func parentOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// baseOf returns the last component of p.
func baseOf(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// join appends a name to a directory, "" being the root.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// under reports whether p is dir or lies below it; everything lies below "".
func under(p, dir string) bool {
	return dir == "" || p == dir || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// inGit reports whether p is a .git directory or file, or lies in one.
func inGit(p string) bool {
	for name := range strings.SplitSeq(p, "/") {
		if name == ".git" {
			return true
		}
	}
	return false
}
