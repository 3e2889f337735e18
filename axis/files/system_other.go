//go:build !linux

package files

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// A folder is a directory that a Journal looks into. Nothing tells of calls here, so a Journal never asks, and sees nothing: what the
// snapshots at both ends say is all. These read by paths.
type folder struct{}

func topFolder(*os.Root) (folder, error) { return folder{}, nil }

// canBorrow says that a call's descriptor of a directory is of no use.
const canBorrow = false

var noFolder folder

func borrowed(int) folder                          { return folder{} }
func (folder) letGo()                              {}
func (folder) close()                              {}
func (folder) open(string) (folder, error)         { return folder{}, nil }
func (folder) stat(string) (sight, error)          { return sight{}, errors.ErrUnsupported }
func (folder) readlink(string) (string, error)     { return "", errors.ErrUnsupported }
func (folder) read(string) (reading, sight, error) { return nil, sight{}, errors.ErrUnsupported }
func (folder) names() ([]string, error)            { return nil, errors.ErrUnsupported }
func (folder) attrs(string) attrSet                { return nil }
func rootAttrs(folder, string) attrSet             { return nil }
func setAttrs(*os.Root, string, string) error      { return nil }
func makeFIFO(*os.Root, string, fs.FileMode) error { return errors.ErrUnsupported }
func whiteout(*os.Root, string, string) error      { return errors.ErrUnsupported }
func makeOpaque(*os.Root, string) error            { return errors.ErrUnsupported }

func (folder) found(root *os.Root, path string) (reading, sight, error) {
	f, info, err := OpenRegular(root, path)
	if err != nil {
		return nil, sight{}, err
	}
	st, _ := stampOf(info)
	return osFile{f}, sight{stamp: st}, nil
}

// An osFile is a regular file, open for reading.
type osFile struct{ *os.File }

func (f osFile) now() (sight, error) {
	info, err := f.Stat()
	if err != nil {
		return sight{}, err
	}
	st, _ := stampOf(info)
	return sight{stamp: st}, nil
}

func (osFile) held() bool     { return true }
func (osFile) attrs() attrSet { return nil }

// SetTimes gives the file at path the times in ns since the epoch at which it was last read, 0 for as it is, and written.
func SetTimes(root *os.Root, path string, read, written int64) error {
	info, err := root.Lstat(localName(path))
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return err
	}
	var at time.Time
	if read != 0 {
		at = time.Unix(0, read)
	}
	return root.Chtimes(localName(path), at, time.Unix(0, written))
}
