package files

import (
	"io/fs"
	"syscall"
)

// InodeOf returns the time of the last change of a file's inode in ns since the epoch, and the inode's number.
func InodeOf(info fs.FileInfo) (ctime int64, ino uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return st.Ctimespec.Nano(), st.Ino, true
}
