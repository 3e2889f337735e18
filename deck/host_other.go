//go:build !linux

package deck

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

func thisHost() Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	h.Name, _ = os.Hostname()
	return h
}

func ownedByUs(fs.FileInfo) bool { return true }

func accessed(st fs.FileInfo) time.Time { return st.ModTime() }

// descriptorPath is path: a system without /proc has no other way to a directory.
func descriptorPath(_ *os.File, path string) string { return path }

// pathOf returns the path that f was opened by, unless that is a name like /dev/stdout.
func pathOf(f *os.File) (string, bool) {
	path, err := filepath.EvalSymlinks(f.Name())
	return path, err == nil && filepath.IsAbs(path)
}
