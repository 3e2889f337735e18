//go:build !linux

package files

import (
	"io/fs"
	"os"
	"path/filepath"
)

// A folder is a directory below a root. Nothing tells of calls here, so a Journal is of use to tests at most.
type folder struct {
	root *os.Root
	path string
}

func topFolder(root *os.Root) (folder, error) { return folder{root: root}, nil }

// letGo does nothing: nothing is held.
func (f folder) letGo() {}

// canBorrow says that a call's descriptor of a directory is of no use.
const canBorrow = false

// noFolder is a directory that is not there.
var noFolder = folder{}

// borrowed cannot be had: there are no descriptors of directories here.
func borrowed(int) folder { return folder{} }

func (f folder) open(path string) (folder, error) {
	path = join(f.path, path)
	info, err := f.root.Lstat(localName(path))
	if err == nil && !info.IsDir() {
		err = fs.ErrNotExist
	}
	return folder{root: f.root, path: path}, err
}

func (f folder) close() {}

func (f folder) stat(name string) (sight, error) {
	if f.root == nil {
		return sight{}, fs.ErrNotExist
	}
	info, err := f.root.Lstat(localName(join(f.path, name)))
	if err != nil {
		return sight{}, err
	}
	return sightOf(info), nil
}

func sightOf(info fs.FileInfo) sight {
	st, _ := stampOf(info)
	return sight{stamp: st, links: 1}
}

func (f folder) readlink(name string) (string, error) {
	target, err := f.root.Readlink(localName(join(f.path, name)))
	return filepath.ToSlash(target), err
}

func (f folder) read(name string) (reading, sight, error) {
	file, info, err := openRegular(f.root, join(f.path, name))
	if err != nil {
		return nil, sight{}, err
	}
	return openedFile{file}, sightOf(info), nil
}

// attrs says that extended attributes are not kept on this system.
func (f folder) attrs(string) attrSet { return nil }

func (f folder) names() ([]string, error) {
	entries, err := listDir(f.root, f.path)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

type openedFile struct{ *os.File }

func (o openedFile) now() (sight, error) {
	info, err := o.Stat()
	if err != nil {
		return sight{}, err
	}
	return sightOf(info), nil
}

// held is not to be told here.
func (openedFile) held() bool { return true }
