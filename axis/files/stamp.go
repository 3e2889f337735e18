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
	ctime, ino, ok := inodeOf(info)
	return stamp{mode: mode, size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: ctime, ino: ino}, ok && isKnown
}

// racyWindow is how long before the beginning of a snapshot a file must have been left alone for its stamp to be
// believed: file systems stamp with a clock that ticks, some once in two seconds.
const racyWindow = 2 * time.Second
