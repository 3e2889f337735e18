package mount

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// Bounds of what a split copies, in bytes. What exceeds them is bound read-only.
const (
	MaxCopiedFile = 64 << 20 // one file
	MaxCopied     = 1 << 30  // the files of one target
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
	w      *World
	target *Target
	source *source
	parts  int   // overlays made
	room   int64 // bytes that may still be copied
	copies bool  // no overlays: all directories are real ones
}

// mountSplit needs the layers' mount to stand somewhere.
func (w *World) mountSplit(t *Target, s *source) error {
	return (&split{w: w, target: t, source: s, room: MaxCopied}).mount()
}

func (p *split) mount() error {
	t, s := p.target, p.source
	own, err := cloneTree(filepath.Join(s.layers.path(), s.upper))
	if err != nil {
		return err
	}
	if err := own.restrict(t.Flags | unix.MOUNT_ATTR_NODEV); err != nil {
		own.Close()
		return at(t.Path, err)
	}
	if err := own.attach(t.Path); err != nil {
		return err
	}
	lowers := make([]layerDir, len(s.lowers))
	for i, l := range s.lowers {
		lowers[i] = layerDir{l.path(), t.Overlay.Lowers[i]}
	}
	err = p.fill("", lowers)
	if err != nil { // another way may be tried
		err = errors.Join(err, unix.Unmount(t.Path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
	}
	return err
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
	if p.copies {
		if p.room -= copiedEntry; p.room < 0 {
			return errTooLarge
		}
	}
	point := slices.IndexFunc(e.layers, func(l layerDir) bool { return slices.Contains(p.target.Covered, l.host) })
	switch {
	case p.coveredLater(p.inside(rel)):
		return p.putEmpty(rel, e)
	case point >= 0:
		return p.showMount(rel, e, e.layers[point])
	case e.mode.IsDir():
		return p.putDir(rel, e)
	case e.mode&os.ModeSymlink != 0:
		to, err := os.Readlink(top.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil // gone since: others work below a temporary directory
		}
		if err == nil {
			err = os.Symlink(to, p.upper(rel))
		}
		return step.Wrap("copy", top.host, err)
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

// coveredLater reports whether an inner target or a mask will stand at path. What a mask hides must not be copied: the
// program may find Upper at its path on the host.
func (p *split) coveredLater(path string) bool {
	return slices.Contains(p.w.plan.Masks, path) ||
		slices.ContainsFunc(p.w.plan.Targets, func(t Target) bool { return t.Path == path })
}

// putEmpty makes what something can be mounted at.
func (p *split) putEmpty(rel string, e *mergedEntry) error {
	var err error
	if e.mode.IsDir() {
		err = os.Mkdir(p.upper(rel), 0o755)
	} else {
		err = os.WriteFile(p.upper(rel), nil, 0o644)
	}
	return step.Wrap("make", p.inside(rel), err)
}

// showMount binds the mount point l. Those of the target's own tree are bound once every overlay stands.
func (p *split) showMount(rel string, e *mergedEntry, l layerDir) error {
	if err := p.putEmpty(rel, e); err != nil {
		return err
	}
	if slices.Contains(p.target.Submounts, p.inside(rel)) {
		return nil
	}
	return p.bind(l.path, rel)
}

// bind shows from at rel, read-only. Where it is gone since, what was made to mount it at stays empty.
func (p *split) bind(from, rel string) error {
	if err := bindReadOnly(from, p.inside(rel)); err != nil && !gone(from, err) {
		return err
	}
	return nil
}

// gone reports whether err came because path is not there any more.
func gone(path string, err error) bool {
	_, errNow := os.Lstat(path)
	return errors.Is(err, unix.ENOENT) && errors.Is(errNow, os.ErrNotExist)
}

// putDir gives the directory the mode and the times that it has in its topmost layer.
func (p *split) putDir(rel string, e *mergedEntry) error {
	top := e.layers[0]
	st, err := os.Lstat(top.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // gone since
	}
	if err != nil {
		return step.Wrap("look at", top.host, err)
	}
	upper := p.upper(rel)
	const kept = os.ModePerm | os.ModeSticky | os.ModeSetgid
	if err := errors.Join(os.Mkdir(upper, 0o700), os.Chmod(upper, st.Mode()&kept)); err != nil {
		return step.Wrap("make", p.inside(rel), err)
	}
	if p.copies || p.hasMountBelow(e.layers) {
		if err := p.fill(rel, e.layers); err != nil {
			return err
		}
		return step.Wrap("make", p.inside(rel), os.Chtimes(upper, st.ModTime(), st.ModTime()))
	}
	if err := os.Chtimes(upper, st.ModTime(), st.ModTime()); err != nil {
		return step.Wrap("make", p.inside(rel), err)
	}
	return p.putPart(rel, e.layers)
}

func (p *split) hasMountBelow(dirs []layerDir) bool {
	return slices.ContainsFunc(p.target.Covered, func(m string) bool {
		return slices.ContainsFunc(dirs, func(l layerDir) bool { return mountinfo.Within(m, l.host) })
	})
}

// putPart mounts an overlay of the directory alone.
func (p *split) putPart(rel string, dirs []layerDir) error {
	p.parts++
	work := filepath.Join(p.source.layers.path(), p.source.work, strconv.Itoa(p.parts))
	if err := os.Mkdir(work, 0o700); err != nil {
		return step.Wrap("make a work directory for", p.inside(rel), err)
	}
	var opened []Tree
	defer func() {
		for _, t := range opened {
			t.Close()
		}
	}()
	paths := []string{p.upper(rel), work}
	for _, l := range dirs {
		paths = append(paths, l.path)
	}
	for i, path := range paths {
		t, err := OpenPath(path)
		if i >= 2 && errors.Is(err, unix.ENOENT) {
			return nil // gone since: what stands there stays empty
		}
		if err != nil {
			return err
		}
		opened = append(opened, t)
	}
	merged, err := newOverlay(p.target.Flags, opened[2:], opened[0].path(), opened[1].path())
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
		return step.Wrap("copy", l.host, err)
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return step.Wrap("copy", l.host, err)
	}
	if p.copies && st.Size() > p.room {
		return errTooLarge
	}
	if st.Size() > min(MaxCopiedFile, p.room) {
		return p.bindFile(rel, l, "it is too large to be copied")
	}
	p.room -= st.Size()
	return step.Wrap("copy", l.host, copyOpened(in, st, p.upper(rel)))
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
	if err := p.putEmpty(rel, &mergedEntry{}); err != nil {
		return err
	}
	p.w.NotCovered = append(p.w.NotCovered, "changes of "+p.inside(rel)+": read-only inside, as "+why)
	return p.bind(l.path, rel)
}
