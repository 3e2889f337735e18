package deck

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// What of a work tree no snapshot covers is copied up to these bounds for a replay outside the jail.
const (
	maxCopiedFiles = 20_000
	maxCopiedBytes = 256 << 20
)

// A copyBudget is what may still be copied.
type copyBudget struct {
	files int
	bytes int64
}

// errTooMuch ends a walk that exceeds a budget.
var errTooMuch = errors.New("too much to copy")

// fits reports whether path, and all below it, may be copied, and takes it off the budget where it may.
func (c *copyBudget) fits(path string) bool {
	left := *c
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be looked at is not copied
		}
		left.files--
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			left.bytes -= info.Size()
		}
		if left.files < 0 || left.bytes < 0 {
			return errTooMuch
		}
		return nil
	})
	if err != nil {
		return false
	}
	*c = left
	return true
}

// copyInto copies the file, link or directory at from to path below root. Sockets, FIFOs, devices and what cannot be read are
// left out; the first error is returned in the end.
func copyInto(root *os.Root, path, from string) error {
	var first error
	err := filepath.WalkDir(from, func(at string, e fs.DirEntry, err error) error {
		rel, errRel := filepath.Rel(from, at)
		if err = errors.Join(err, errRel); err == nil {
			err = copyOne(root, filepath.Join(path, rel), at, e)
		}
		if err != nil && first == nil {
			first = err
		}
		if err != nil && e != nil && e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return errors.Join(err, first)
}

func copyOne(root *os.Root, to, from string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return root.Mkdir(to, info.Mode().Perm()|0o700)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return root.Symlink(target, to)
	case !info.Mode().IsRegular():
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
