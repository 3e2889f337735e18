//go:build !linux

package recording

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// ThisHost describes the machine.
func ThisHost() Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	h.Name, _ = os.Hostname()
	return h
}

// OwnedByUs knows no owners here.
func OwnedByUs(fs.FileInfo) bool { return true }

// Accessed is when a file was last changed: nothing else is known.
func Accessed(st fs.FileInfo) time.Time { return st.ModTime() }

// DescriptorPath is path: a system without /proc has no other way to a directory.
func DescriptorPath(_ *os.File, path string) string { return path }

// PathOf returns the path that f was opened by, unless that is a name like /dev/stdout.
func PathOf(f *os.File) (string, bool) {
	path, err := filepath.EvalSymlinks(f.Name())
	return path, err == nil && filepath.IsAbs(path)
}
