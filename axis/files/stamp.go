package files

import (
	"io/fs"
	"time"
)

// A stamp is what the file system says about a file without its content being read. Two equal stamps of one path mean
// the same content, but for the racy case that statCache describes.
type stamp struct {
	mode         Mode
	size         int64
	mtime, ctime int64 // Unix epoch ns
	ino          uint64
}

// stampOf returns the stamp of a file; ok is false where this system does not give all of it.
func stampOf(info fs.FileInfo) (stamp, bool) {
	mode, isKnown := ModeOf(info.Mode())
	ctime, ino, ok := InodeOf(info)
	return stamp{mode: mode, size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: ctime, ino: ino}, ok && isKnown
}

// racyWindow is how long before the beginning of a snapshot a file must have been left alone for its stamp to be
// believed: file systems stamp with a clock that ticks, some once in two seconds.
const racyWindow = 2 * time.Second

// Unchanged reports whether a file is as it was when a and b were taken of it, by size, times and inode; false where the system does
// not tell.
func Unchanged(a, b fs.FileInfo) bool {
	was, ok := stampOf(a)
	now, isKnown := stampOf(b)
	return ok && isKnown && was == now
}
