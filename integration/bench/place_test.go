package bench

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A place is where a workload runs: a work tree, a HOME and a temporary directory of its own below one directory, so that
// a mount over that shows all three.
type place struct{ root string }

func (p *place) work() string { return filepath.Join(p.root, "work") }
func (p *place) home() string { return filepath.Join(p.root, "home") }
func (p *place) temp() string { return filepath.Join(p.root, "tmp") }

// env is what a program's environment says of the place.
func (p *place) env() []string { return []string{"HOME=" + p.home(), "TMPDIR=" + p.temp()} }

// writable are the directories that a program in the place may change.
func (p *place) writable() []string { return []string{p.work(), p.home(), p.temp()} }

// newPlace makes an empty one.
func (e *env) newPlace() (*place, error) {
	root, err := e.dir("place")
	if err != nil {
		return nil, err
	}
	p := &place{root}
	for _, dir := range p.writable() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// putAway takes paths out of a place. They are renamed and stay on the disk until the program ends: where many files were
// removed a moment ago, file systems are slow to make new ones (ext4 without a journal scans past their inodes for minutes),
// and the next run would pay for the one before. A path that is not there is none.
func (e *env) putAway(paths ...string) error {
	for _, path := range paths {
		to, err := e.dir("away")
		if err == nil {
			err = os.Rename(path, filepath.Join(to, "it"))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// clear puts away what lies in directories.
func (e *env) clear(dirs ...string) error {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if err := e.putAway(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
