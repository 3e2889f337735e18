package deck

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// thisHost describes the machine.
func thisHost() Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	h.Name, _ = os.Hostname()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return h
}

// ownedByUs reports whether a file is the caller's: a directory in a place that all may write to could be anybody's.
func ownedByUs(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}

// accessed is when a file was last read.
func accessed(st fs.FileInfo) time.Time {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return time.Unix(sys.Atim.Unix())
	}
	return st.ModTime()
}

// descriptorPath is a path of the open directory f that leads nowhere else, whatever is renamed or linked at path.
func descriptorPath(f *os.File, _ string) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// pathOf returns the path of an open file.
func pathOf(f *os.File) (string, bool) {
	path, err := os.Readlink(descriptorPath(f, ""))
	return path, err == nil
}
