package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// MakeWhiteout makes path, in a directory that will be a layer of an Overlay, hide what lower layers have there. It
// needs no root. The path must not exist.
func MakeWhiteout(path string) error {
	if err := unix.Mknod(path, unix.S_IFCHR, 0); err != nil {
		return &os.PathError{Op: "make whiteout", Path: path, Err: err}
	}
	return nil
}

// HasFilledLayer reports whether an upper layer is not empty before the start.
func HasFilledLayer(overlays []Overlay) bool {
	return slices.ContainsFunc(overlays, func(o Overlay) bool {
		entries, err := os.ReadDir(o.Upper)
		return err != nil || len(entries) > 0
	})
}

// EmptyLayers takes away what a start that failed left in the layers' directories.
func EmptyLayers(overlays []Overlay) error {
	for _, o := range overlays {
		if err := removeLayer(filepath.Join(filepath.Dir(o.Upper), submountsDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, dir := range []string{o.Upper, o.Work} {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := removeLayer(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeLayer removes a tree in which the kernel may have left directories that their owner may not enter.
func removeLayer(path string) error {
	err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}
