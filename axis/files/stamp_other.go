//go:build !linux && !darwin

package files

import "io/fs"

// InodeOf says that this system gives no inode: every snapshot reads every file.
func InodeOf(fs.FileInfo) (ctime int64, ino uint64, ok bool) { return 0, 0, false }
