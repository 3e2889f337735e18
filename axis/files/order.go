package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Bounds of an order layer, in names: all of them, and those of one directory, of which each costs a replay a file that is made.
const (
	maxOrdered   = 20_000
	maxOrderedIn = 500
)

// BuildOrder fills orderDir, which must be empty or absent, so that an overlay which has it below all of its layers lists names in the order
// of a directory on the disk. Overlayfs lists the lowest layer's names in their order there, and behind them what is above alone: what a run
// takes away or makes would stand in another place than it did. So orderDir hides, by a whiteout that is below everything, each name that
// its directories have in one of layers, topmost first, or among the changed paths of the run. It reports whether it has any.
//
// It is made of the directories of changed, and of those that a layer above the last one has. One that lists what the last layer has in
// another order is left out: names do not order it there. The overlay shows them with one link, as it does those that it merges.
// One layer alone, in which the run changed nothing, is listed as it is: nothing is made.
func BuildOrder(orderDir string, changed map[string]bool, layers ...string) (bool, error) {
	if len(changed) == 0 && len(layers) == 1 {
		return false, nil
	}
	o := &orderer{wanted: aboveAll(changed), names: make(map[string][]string), left: maxOrdered}
	for _, paths := range []map[string]bool{changed, o.wanted} {
		for path := range paths {
			if fs.ValidPath(path) {
				o.names[parentOf(path)] = append(o.names[parentOf(path)], baseOf(path))
			}
		}
	}
	for i, layer := range layers {
		root, err := os.OpenRoot(layer)
		if err != nil {
			return false, fmt.Errorf("files: order: %w", err)
		}
		defer root.Close()
		o.layers = append(o.layers, root)
		if i < len(layers)-1 {
			if err := o.want(root); err != nil {
				return false, fmt.Errorf("files: order: %w", err)
			}
		}
	}
	var err error
	if o.root, err = OpenEmpty(orderDir); err != nil {
		return false, fmt.Errorf("files: order: %w", err)
	}
	defer o.root.Close()
	ok, err := o.dir("")
	if err != nil {
		return false, fmt.Errorf("files: order: %w", err)
	}
	return ok, nil
}

type orderer struct {
	layers []*os.Root
	root   *os.Root
	wanted map[string]bool     // directories
	names  map[string][]string // of changed paths, by the directory
	left   int                 // of maxOrdered
	hidden string              // the whiteout that was made last; "" for none
}

// want notes the directories of a layer.
func (o *orderer) want(layer *os.Root) error {
	return fs.WalkDir(layer.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			o.wanted[filepath.ToSlash(path)] = true
		}
		return err
	})
}

// dir makes one directory whole, or says that it is to be left out.
func (o *orderer) dir(path string) (bool, error) {
	names := o.names[path]
	var disk []string
	for i, layer := range o.layers {
		listed, err := listNames(layer, path)
		if err != nil && !isGone(err) {
			return false, nil // nobody lists it, or all of it is hidden
		}
		if i == len(o.layers)-1 {
			disk = listed
		}
		names = append(listed, names...) // those of the disk first, for where names stand as they were made
	}
	done := make(map[string]bool)
	names = slices.DeleteFunc(names, func(name string) bool {
		again := done[name]
		done[name] = true
		return again
	})
	if o.left -= len(names); len(names) > maxOrderedIn || o.left < 0 {
		return false, nil
	}
	for _, name := range names {
		if err := o.name(join(path, name)); err != nil {
			return false, err
		}
	}
	clear(done)
	for _, name := range disk {
		done[name] = true
	}
	listed, err := listNames(o.root, path)
	some := len(listed) > 0
	listed = slices.DeleteFunc(listed, func(name string) bool { return !done[name] })
	return some && slices.Equal(listed, disk), err
}

// name makes one name: a directory where one is to be ordered, else a whiteout.
func (o *orderer) name(path string) error {
	if o.wanted[path] && o.isDir(path) {
		if err := o.root.Mkdir(localName(path), 0o700); err != nil {
			return err
		}
		if ok, err := o.dir(path); ok || err != nil {
			return err
		}
		if err := o.root.RemoveAll(localName(path)); err != nil {
			return err
		}
		o.hidden = "" // it may have been there
	}
	err := whiteout(o.root, path, o.hidden)
	o.hidden = path
	return err
}

// isDir reports whether the layers show a directory.
func (o *orderer) isDir(path string) bool {
	for _, layer := range o.layers {
		if info, err := layer.Lstat(localName(path)); err == nil {
			return info.IsDir()
		}
	}
	return false
}

// listNames lists a directory in the order of its file system.
func listNames(root *os.Root, path string) ([]string, error) {
	f, err := root.OpenFile(localName(path), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
