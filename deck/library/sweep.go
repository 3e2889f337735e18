package library

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// ScratchRoots are the places for overlay layers, best first: on a disk, and outside what programs usually write to.
var ScratchRoots = []string{"/var/tmp", "/tmp", "/dev/shm"}

// Sweep removes the temporary directories that killed commands of this user left outside any library: layers of runs,
// certificates, what was unpacked to be looked at. Those of commands that run stay. Every command begins with it.
func Sweep() {
	young := func(string) bool { return false }
	for _, root := range ScratchRoots {
		for _, dir := range staleScratches(root, young) {
			_ = removeScratch(dir) // what cannot go is tried again by the next one
		}
	}
	recording.RemoveStale(recording.StaleTemps(os.TempDir(), tempPrefixes...))
}

// tempPrefixes begin the names of what is locked in the temporary directory: the certificates of a run outside the jail, packed
// recordings that are being looked at, and end states that are being checked.
var tempPrefixes = []string{ProxyPrefix, OpenPrefix, CheckPrefix}

// The beginnings of their names.
const (
	ProxyPrefix = "tapedeck-proxy-" // of the certificates of a run outside the jail
	OpenPrefix  = "tapedeck-open-"
	CheckPrefix = "tapedeck-check-" // of the work tree as a run left it
)

// staleScratches lists the scratches under root that nobody holds; where there are no locks, those that are ancient.
func staleScratches(root string, ancient func(string) bool) []string {
	base := filepath.Join(root, fmt.Sprintf("tapedeck-%d", os.Getuid()))
	if st, err := os.Lstat(base); err != nil || !st.IsDir() || !recording.OwnedByUs(st) {
		return nil
	}
	names, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var out []string
	for _, n := range names {
		dir := filepath.Join(base, n.Name())
		if !n.IsDir() {
			continue
		}
		f, err := recording.LockExclusive(dir)
		if err == nil {
			f.Close()
		}
		if err == nil || errors.Is(err, recording.ErrNoLocks) && ancient(dir) {
			out = append(out, dir)
		}
	}
	return out
}

// removeScratch deletes a scratch. The error is ErrHeld where somebody has taken it since.
func removeScratch(dir string) error {
	f, err := recording.LockExclusive(dir)
	if err != nil && !errors.Is(err, recording.ErrNoLocks) {
		return recording.Gone(err)
	}
	defer recording.Unlock(f)
	OpenLayers(dir)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("%s could not be deleted: check who owns what lies in it: %w", dir, err)
	}
	return nil
}

// OpenLayers has the directory of a run's layers be such that it can be removed. The kernel leaves directories there that their owner may
// not enter.
func OpenLayers(dir string) {
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

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
