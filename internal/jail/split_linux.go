package jail

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bounds of what a split copies, in bytes. What exceeds them is bound read-only.
const (
	maxCopiedFile = 64 << 20 // one file
	maxCopied     = 1 << 30  // the files of one target
)

// A split builds a target whose lowers have mounts below them, which overlayfs in a user namespace refuses as layers.
// Directories on the way to such a mount become real ones in Upper, shown at the target. Below them,
//
//	a directory with no mount below  is an overlay of its own: its upper lies in Upper, at the place of the directory
//	a mount point                    is bound read-only
//	a file or a symbolic link        is copied
//
// A whiteout or an opaque directory of an upper layer hides what lower ones have, as in an overlay.
type split struct {
	w      *world
	target *mountTarget
	source *source
	parts  int   // overlays made
	room   int64 // bytes that may still be copied
}

// A layerDir is a directory, or another file, in one lower: by a path that nothing covers, and where it lies on the host.
type layerDir struct{ path, host string }

func (l layerDir) join(name string) layerDir {
	return layerDir{filepath.Join(l.path, name), filepath.Join(l.host, name)}
}

// mountSplit needs the layers' mount to stand somewhere.
func (w *world) mountSplit(t *mountTarget, s *source) error {
	own, err := cloneTree(filepath.Join(s.layers.path(), s.upper))
	if err != nil {
		return err
	}
	if err := own.restrict(unix.MOUNT_ATTR_NODEV); err != nil {
		own.close()
		return at(t.Path, err)
	}
	if err := own.attach(t.Path); err != nil {
		return err
	}
	lowers := make([]layerDir, len(s.lowers))
	for i, l := range s.lowers {
		lowers[i] = layerDir{l.path(), t.Overlay.Lowers[i]}
	}
	p := &split{w: w, target: t, source: s, room: maxCopied}
	return p.fill("", lowers)
}

// fill makes the entries of one real directory. rel is its path below the target.
func (p *split) fill(rel string, dirs []layerDir) error {
	entries, err := mergeLayers(dirs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.put(filepath.Join(rel, e.name), e); err != nil {
			return err
		}
	}
	return nil
}

func (p *split) put(rel string, e *mergedEntry) error {
	top := e.layers[0]
	point := slices.IndexFunc(e.layers, func(l layerDir) bool { return slices.Contains(p.target.Covered, l.host) })
	switch {
	case point >= 0:
		return p.showMount(rel, e, e.layers[point])
	case e.mode.IsDir():
		return p.putDir(rel, e)
	case e.mode&os.ModeSymlink != 0:
		to, err := os.Readlink(top.path)
		if err == nil {
			err = os.Symlink(to, p.upper(rel))
		}
		return stepError("copy", top.host, err)
	case e.mode.IsRegular():
		return p.putFile(rel, top)
	}
	return nil // sockets, pipes and devices do nothing in an overlay
}

// upper is where rel lies in Upper.
func (p *split) upper(rel string) string {
	return filepath.Join(p.source.layers.path(), p.source.upper, rel)
}

// inside is where the program finds rel.
func (p *split) inside(rel string) string { return filepath.Join(p.target.Path, rel) }

// showMount binds the mount point l. Those of the target's own tree are bound once every overlay stands.
func (p *split) showMount(rel string, e *mergedEntry, l layerDir) error {
	var err error
	if e.mode.IsDir() {
		err = os.Mkdir(p.upper(rel), 0o755)
	} else {
		err = os.WriteFile(p.upper(rel), nil, 0o644)
	}
	if err != nil {
		return stepError("make", p.inside(rel), err)
	}
	if slices.Contains(p.target.Submounts, p.inside(rel)) {
		return nil
	}
	return bindReadOnly(l.path, p.inside(rel))
}

// putDir gives the directory the mode and the times that it has in its topmost layer.
func (p *split) putDir(rel string, e *mergedEntry) error {
	top := e.layers[0]
	st, err := os.Lstat(top.path)
	if err != nil {
		return stepError("look at", top.host, err)
	}
	upper := p.upper(rel)
	const kept = os.ModePerm | os.ModeSticky | os.ModeSetgid
	if err := errors.Join(os.Mkdir(upper, 0o700), os.Chmod(upper, st.Mode()&kept)); err != nil {
		return stepError("make", p.inside(rel), err)
	}
	if p.hasMountBelow(e.layers) {
		if err := p.fill(rel, e.layers); err != nil {
			return err
		}
		return stepError("make", p.inside(rel), os.Chtimes(upper, st.ModTime(), st.ModTime()))
	}
	if err := os.Chtimes(upper, st.ModTime(), st.ModTime()); err != nil {
		return stepError("make", p.inside(rel), err)
	}
	return p.putPart(rel, e.layers)
}

func (p *split) hasMountBelow(dirs []layerDir) bool {
	return slices.ContainsFunc(p.target.Covered, func(m string) bool {
		return slices.ContainsFunc(dirs, func(l layerDir) bool { return within(m, l.host) })
	})
}

// putPart mounts an overlay of the directory alone.
func (p *split) putPart(rel string, dirs []layerDir) error {
	p.parts++
	work := filepath.Join(p.source.layers.path(), p.source.work, strconv.Itoa(p.parts))
	if err := os.Mkdir(work, 0o700); err != nil {
		return stepError("make a work directory for", p.inside(rel), err)
	}
	var opened []tree
	defer func() {
		for _, t := range opened {
			t.close()
		}
	}()
	paths := []string{p.upper(rel), work}
	for _, l := range dirs {
		paths = append(paths, l.path)
	}
	for _, path := range paths {
		t, err := openPath(path)
		if err != nil {
			return err
		}
		opened = append(opened, t)
	}
	merged, err := newOverlay(opened[2:], opened[0].path(), opened[1].path())
	if err != nil {
		return overlayError(p.target, err)
	}
	return merged.attach(p.inside(rel))
}

// putFile copies a file, or binds it where that is too much or not allowed.
func (p *split) putFile(rel string, l layerDir) error {
	in, err := os.OpenFile(l.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // gone since
	}
	if errors.Is(err, os.ErrPermission) {
		return p.bindFile(rel, l, "it cannot be read")
	}
	if err != nil {
		return stepError("copy", l.host, err)
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return stepError("copy", l.host, err)
	}
	if st.Size() > min(maxCopiedFile, p.room) {
		return p.bindFile(rel, l, "it is too large to be copied")
	}
	p.room -= st.Size()
	return stepError("copy", l.host, copyOpened(in, st, p.upper(rel)))
}

func copyOpened(in *os.File, st os.FileInfo, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, st.Size())) // it may grow meanwhile
	if err == nil {
		err = out.Chmod(st.Mode().Perm())
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, st.ModTime(), st.ModTime())
}

func (p *split) bindFile(rel string, l layerDir, why string) error {
	if err := os.WriteFile(p.upper(rel), nil, 0o600); err != nil {
		return stepError("make", p.inside(rel), err)
	}
	p.w.notCovered = append(p.w.notCovered, "changes of "+p.inside(rel)+": read-only inside, as "+why)
	return bindReadOnly(l.path, p.inside(rel))
}

// stepError is nil where err is.
func stepError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &SetupError{Op: op, Path: path, Err: errnoOf(err)}
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
		if err != nil {
			return nil, stepError(opOverlay, dir.host, err)
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

// isOpaque tells what MakeOpaque marked.
func isOpaque(dir string) bool {
	var value [1]byte
	n, err := unix.Lgetxattr(dir, opaqueAttr, value[:])
	return err == nil && n == 1 && value[0] == 'y'
}
