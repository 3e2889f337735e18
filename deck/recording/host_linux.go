package recording

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ThisHost describes the machine.
func ThisHost() Host {
	h := Host{OS: runtime.GOOS, Arch: runtime.GOARCH}
	h.Name, _ = os.Hostname()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return h
}

// OwnedByUs reports whether a file is the caller's: a directory in a place that all may write to could be anybody's.
func OwnedByUs(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}

// Accessed is when a file was last read.
func Accessed(st fs.FileInfo) time.Time {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return time.Unix(sys.Atim.Unix())
	}
	return st.ModTime()
}

// DescriptorPath is a path of the open directory f that leads nowhere else, whatever is renamed or linked at path.
func DescriptorPath(f *os.File, _ string) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// PathOf returns the path of an open file.
func PathOf(f *os.File) (string, bool) {
	path, err := os.Readlink(DescriptorPath(f, ""))
	return path, err == nil
}
