package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
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

// A layerDir is a directory, or another file, in one lower: by a path that nothing covers, and where it lies on the host.
type layerDir struct{ path, host string }

func (l layerDir) join(name string) layerDir {
	return layerDir{filepath.Join(l.path, name), filepath.Join(l.host, name)}
}

// A mergedEntry is one name of a merged directory. A file is the topmost layer's; a directory has as many layers as show
// through it, topmost first.
type mergedEntry struct {
	name   string
	mode   os.FileMode // the type alone
	layers []layerDir
	closed bool // lower layers add nothing
}

// mergeLayers reads directories as overlayfs would merge them, topmost first. Entries come in the order of their names
// within a layer.
func mergeLayers(dirs []layerDir) ([]*mergedEntry, error) {
	byName := make(map[string]*mergedEntry)
	var out []*mergedEntry
	for i, dir := range dirs {
		entries, err := os.ReadDir(dir.path)
		if errors.Is(err, os.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return nil, step.Wrap(step.OpOverlay, dir.host, err)
		}
		for _, d := range entries {
			e := byName[d.Name()]
			if e == nil {
				e = &mergedEntry{name: d.Name(), mode: d.Type()}
				byName[e.name] = e
				out = append(out, e)
			}
			e.add(d, dir.join(e.name), i == len(dirs)-1)
		}
	}
	return slices.DeleteFunc(out, func(e *mergedEntry) bool { return len(e.layers) == 0 }), nil
}

// add takes in what one more layer has by the entry's name. The lowest one need not be asked whether it is opaque: it
// may be a mount that does not answer.
func (e *mergedEntry) add(d os.DirEntry, l layerDir, lowest bool) {
	switch {
	case e.closed:
	case isWhiteout(d):
		e.closed = true
	case d.IsDir():
		e.layers = append(e.layers, l)
		e.closed = !lowest && isOpaque(l.path)
	default:
		if len(e.layers) == 0 {
			e.layers = append(e.layers, l)
		}
		e.closed = true
	}
}

// isWhiteout tells what MakeWhiteout made.
func isWhiteout(d os.DirEntry) bool {
	if d.Type()&os.ModeCharDevice == 0 {
		return false
	}
	info, err := d.Info()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Rdev == 0
}

// isOpaque reports whether a directory of a layer hides everything below it, by the attribute that an overlay mounted with userxattr reads.
func isOpaque(dir string) bool {
	var value [1]byte
	n, err := unix.Lgetxattr(dir, "user.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}
