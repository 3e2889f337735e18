package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// A mirrored is one entry of a directory on its way into the directory's mirror.
type mirrored struct {
	name string
	link string // of a symbolic link; empty for the rest
	dir  bool
	tree Tree
}

// mirror replaces dir by a file system of ours that shows the same entries, so that new ones can be made beside them
// without the host's seeing any. The mirror of the root becomes the root.
func (w *World) mirror(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return &step.Error{Op: "mirror", Path: dir, Err: step.Errno(err)}
	}
	entries, err := readMirrored(dir)
	if err != nil {
		return err
	}
	t, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, fmt.Sprintf("mode=%o", st.Mode().Perm()))
	if err != nil {
		return at(dir, err)
	}
	defer t.Close()
	place := dir
	if dir == "/" {
		place = "/proc" // any directory; the copies of all are taken
	}
	if err := t.move(unix.AT_FDCWD, place); err != nil {
		return err
	}
	for _, e := range entries {
		if err := e.putIn(t); err != nil {
			return err
		}
	}
	w.own = append(w.own, dir)
	if dir == "/" {
		return w.pivot(t)
	}
	return nil
}

func readMirrored(dir string) ([]mirrored, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &step.Error{Op: "mirror", Path: dir, Err: step.Errno(err)}
	}
	var out []mirrored
	for _, e := range entries {
		m, path := mirrored{name: e.Name(), dir: e.IsDir()}, filepath.Join(dir, e.Name())
		if e.Type()&fs.ModeSymlink != 0 {
			m.link, err = os.Readlink(path)
		} else {
			m.tree, err = cloneTree(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return nil, &step.Error{Op: "mirror", Path: path, Err: step.Errno(err)}
		}
		out = append(out, m)
	}
	return out, nil
}

func (m *mirrored) putIn(t Tree) error {
	var err error
	switch {
	case m.link != "":
		err = unix.Symlinkat(m.link, t.fd, m.name)
	case m.dir:
		err = unix.Mkdirat(t.fd, m.name, 0o755)
	default:
		var fd int
		if fd, err = unix.Openat(t.fd, m.name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644); err == nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return &step.Error{Op: "mirror", Path: m.name, Err: err}
	}
	if m.link != "" {
		return nil
	}
	defer m.tree.Close()
	return m.tree.move(t.fd, m.name)
}

// pivot makes t the root. The old one stays, unseen, until the overlays have been made from what stands in it.
func (w *World) pivot(t Tree) error {
	old, err := OpenPath("/")
	if err != nil {
		return err
	}
	w.oldRoot = &old
	err = unix.Fchdir(t.fd)
	if err == nil {
		err = unix.PivotRoot(".", ".")
	}
	if err == nil {
		err = unix.Chdir("/")
	}
	return step.Wrap("change the root", "/", err)
}
