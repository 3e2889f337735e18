package door

import (
	"io/fs"
	"os"
)

// A fileID remembers which file was put in place.
type fileID struct{ info fs.FileInfo }

// same reports whether path is still that file.
func (f fileID) same(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && f.info != nil && os.SameFile(info, f.info)
}
