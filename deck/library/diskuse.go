package library

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A diskUse is what the files below a directory take, in bytes of their contents: recordings share blobs by hard links,
// and removing one name of several frees nothing.
type diskUse struct {
	total int64
	files int
	names map[recording.Inode]int // names below the directory, of files that have several
}

// measure counts everything below dir, which may be absent.
func measure(dir string) (*diskUse, error) {
	u := &diskUse{names: make(map[recording.Inode]int)}
	err := walkFiles(dir, func(info os.FileInfo) {
		u.files++
		id, several := recording.LinkedInode(info)
		if several {
			u.names[id]++
		}
		if !several || u.names[id] == 1 {
			u.total += info.Size()
		}
	})
	return u, err
}

// release takes away what a file or directory takes, and returns how many files that is and what removing it frees. n is
// -1 where it is not there.
func (u *diskUse) release(path string) (n int, freed int64, err error) {
	if !recording.Exists(path) {
		return -1, 0, nil
	}
	err = walkFiles(path, func(info os.FileInfo) {
		n++
		if id, several := recording.LinkedInode(info); several {
			if u.names[id]--; u.names[id] > 0 {
				return
			}
			delete(u.names, id)
		}
		freed += info.Size()
	})
	u.total = max(0, u.total-freed) // what came since it was measured is not in it
	return n, freed, err
}

// walkFiles calls visit for everything below path that is no directory. What vanishes meanwhile is not visited.
func walkFiles(path string, visit func(os.FileInfo)) error {
	return filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return recording.Gone(err)
		}
		if e.IsDir() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return recording.Gone(err)
		}
		visit(info)
		return nil
	})
}
