package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// A source is what a target will show, opened while nothing is covered or read-only yet.
type source struct {
	writable  Tree // of a target without overlay: the host's mounts
	lowers    []Tree
	layers    Tree   // the directory that holds upper and work
	layersAt  string // and its path
	upper     string // below it
	work      string
	standing  []Tree          // of these those that must stand somewhere while the overlay is made
	submounts map[string]Tree // read-only: those of the target, and of a mount the target itself
	err       error           // why a mount could not be opened
}

// show makes the mount at path stand there, read-only, and reports whether it does: the host may have unmounted it since, and what
// is below it need not have the place.
func (s *source) show(path string) (bool, error) {
	tree, ok := s.submounts[path]
	if !ok {
		return false, nil
	}
	err := tree.attach(path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

func (w *World) openSources() (err error) {
	for i := range w.plan.Targets {
		t, s := &w.plan.Targets[i], &source{submounts: make(map[string]Tree)}
		w.sources[t.Path] = s
		switch {
		case t.Within:
		case t.Overlay == nil:
			s.writable, err = openRestricted(t.Path, unix.MOUNT_ATTR_NODEV)
		default:
			err = w.openOverlay(t, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openRestricted copies the mounts at path and below it, with further attributes.
func openRestricted(path string, attrs uint64) (Tree, error) {
	t, err := cloneTree(path)
	if err != nil {
		return t, err
	}
	return t, at(path, t.restrict(attrs))
}

func (w *World) openOverlay(t *Target, s *source) (err error) {
	for _, l := range t.Overlay.Lowers {
		var lower Tree
		if slices.Contains(t.Alone, l) {
			lower.fd, w.alone = w.alone[0], w.alone[1:]
			s.standing = append(s.standing, lower)
		} else if lower, err = OpenPath(l); err != nil {
			if !t.Mount {
				return err
			}
			s.err = err
		}
		s.lowers = append(s.lowers, lower)
	}
	for _, dir := range t.Overlay.layers() {
		if layer, err := OpenPath(dir); err == nil {
			w.Layers[LayerOf(dir)] = layer.fd
		}
	}
	paths := t.Submounts
	if t.Mount {
		paths = append([]string{t.Path}, paths...)
	}
	for _, m := range paths {
		tree, err := openRestricted(m, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the host unmounted it since it was listed
		}
		if err != nil {
			return err
		}
		s.submounts[m] = tree
	}
	s.layersAt = filepath.Dir(t.Overlay.Upper)
	s.upper, s.work = filepath.Base(t.Overlay.Upper), filepath.Base(t.Overlay.Work)
	s.layers, err = cloneTree(s.layersAt)
	s.standing = append(s.standing, s.layers)
	return err
}

// mountTargets goes from outer to inner targets, so that a work tree in HOME lands on top of HOME.
func (w *World) mountTargets() error {
	for i := range w.plan.Targets {
		t := &w.plan.Targets[i]
		s := w.sources[t.Path]
		if !t.Mount {
			if err := w.needDir(t.Path); err != nil {
				return err
			}
		}
		mount := w.mountWritable
		switch {
		case t.Mount:
			mount = w.mountSubmount
		case t.Overlay != nil:
			mount = w.mountOverlay
		}
		if err := mount(t, s); err != nil {
			return err
		}
		open, err := OpenPath(t.Path)
		if t.Mount && err != nil {
			continue // gone since, or does not answer
		}
		if err != nil {
			return err
		}
		w.Opened[t.Path] = open.fd
	}
	return nil
}

func (w *World) mountWritable(t *Target, s *source) error {
	if t.Within {
		return nil
	}
	return s.writable.attach(t.Path)
}

// mountOverlay names the layers by descriptor: their paths may be covered by now, and may hold what an option list
// takes for its own. The upper layer's mount stands where it can be written to until the overlay has it.
func (w *World) mountOverlay(t *Target, s *source) error {
	var err, errDetach error
	for _, l := range s.standing {
		err = errors.Join(err, l.move(unix.AT_FDCWD, emptyDir))
	}
	if err != nil {
		return at(s.layersAt, err)
	}
	err = w.mountLayers(t, s)
	for _, l := range slices.Backward(s.standing) {
		errDetach = errors.Join(errDetach, l.detach())
	}
	for _, l := range append(s.lowers, s.layers) {
		l.Close()
	}
	switch {
	case errDetach != nil:
		return at(s.layersAt, errDetach)
	case err != nil && t.Mount:
		return w.staysReadOnly(t, s, err)
	case err != nil:
		return err
	}
	for _, m := range t.Submounts {
		if _, err := s.show(m); err != nil {
			return err
		}
	}
	return nil
}

// mountLayers mounts the overlay of t. A mount below another overlay whose file system cannot be a layer is copied.
func (w *World) mountLayers(t *Target, s *source) error {
	if t.Mount {
		file, err := isFile(s.lowers[0])
		if err != nil {
			return fmt.Errorf("cannot be looked at (%w)", err)
		}
		if file {
			return mountFile(t, s)
		}
	}
	mount := mountWhole
	if len(t.Covered) > 0 {
		mount = w.mountSplit
	}
	err := mount(t, s)
	if err == nil || !t.Mount {
		return err
	}
	if errCopy := w.mountCopy(t, s); errCopy != nil {
		return fmt.Errorf("cannot be a layer (%w), nor be copied (%w)", step.Errno(err), step.Errno(errCopy))
	}
	return nil
}

func mountWhole(t *Target, s *source) error {
	merged, err := newOverlay(t.Flags, s.lowers, filepath.Join(s.layers.path(), s.upper), filepath.Join(s.layers.path(), s.work))
	if err != nil {
		return overlayError(t, err)
	}
	return merged.attach(t.Path)
}

// newOverlay makes an overlay that stands nowhere yet. Nobody wants its upper layer after a crash of the machine, so the
// kernel need not write it to the disk: not for an fsync inside, and not when the jail ends, which would take seconds.
func newOverlay(flags uint64, lowers []Tree, upper, work string) (Tree, error) {
	return NewOverlayWith("volatile", flags, lowers, upper, work)
}

// NewOverlayWith makes an overlay with an option that it can do without. The work directory must be a fresh one.
func NewOverlayWith(option string, flags uint64, lowers []Tree, upper, work string) (Tree, error) {
	paths := make([]string, len(lowers))
	for i, l := range lowers {
		paths[i] = l.path()
	}
	options := []string{"userxattr", "lowerdir=" + strings.Join(paths, ":"), "upperdir=" + upper, "workdir=" + work}
	attrs := int(flags | unix.MOUNT_ATTR_NODEV)
	t, err := newFS("overlay", attrs, append(options, option)...)
	if err == nil {
		return t, nil
	}
	if t, errWithout := newFS("overlay", attrs, options...); errWithout == nil {
		return t, nil
	}
	return Tree{}, err
}

// overlayError says what the kernel does not: which of the usual causes it was.
func overlayError(t *Target, err error) error {
	var e *step.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Op, e.Path = step.OpOverlay, t.Path
	if len(t.Submounts) > 0 && e.Detail == "" {
		e.Detail = "mounted below it: " + strings.Join(t.Submounts, ", ")
	}
	return err
}

// needDir makes path a directory. One that does not exist is made in the overlay or the file system of ours that it
// falls in; elsewhere the nearest directory that exists is first replaced by a mirror of itself.
func (w *World) needDir(path string) error {
	st, err := os.Stat(path)
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		return &step.Error{Op: "mount at", Path: path, Err: unix.ENOTDIR}
	case !errors.Is(err, os.ErrNotExist):
		return &step.Error{Op: "look at", Path: path, Err: step.Errno(err)}
	}
	above := filepath.Dir(path)
	for {
		if st, err := os.Stat(above); err == nil && st.IsDir() {
			break
		}
		above = filepath.Dir(above)
	}
	if err := w.canMake(above, path); err != nil {
		return err
	}
	return mkdirAll(path)
}

// canMake makes sure that new directories in above stay off the host.
func (w *World) canMake(above, path string) error {
	best, writable := "", false
	for p := range w.Opened {
		if mountinfo.Within(above, p) && len(p) > len(best) {
			best, writable = p, w.plan.targetAbove(p).Overlay == nil
		}
	}
	for _, p := range slices.Concat(w.own, []string{w.shm}) {
		if p != "" && mountinfo.Within(above, p) && len(p) > len(best) {
			best, writable = p, false
		}
	}
	switch {
	case writable:
		return &step.Error{Op: "make " + path + " inside the writable", Path: best, Err: unix.EEXIST}
	case best != "":
		return nil
	}
	return w.mirror(above)
}
