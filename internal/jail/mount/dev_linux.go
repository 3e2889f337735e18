package mount

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// deviceNames are the devices of the host that a program sees. A uid 0 could open any other, its disks too, with no
// capability at all.
var deviceNames = []string{"null", "zero", "full", "random", "urandom", "tty"}

var deviceLinks = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	"ptmx": "pts/ptmx",
}

// openDevices copies the mounts of devices before devices stop to work on them. The terminal of the program belongs to
// the host's /dev/pts; as /dev/console the program finds its name, as in other containers.
func (w *World) openDevices() error {
	w.devices = make(map[string]Tree)
	for _, name := range deviceNames {
		if err := w.openDevice(name, "/dev/"+name); err != nil {
			return err
		}
	}
	if w.plan.Console == "" {
		return nil
	}
	err := w.openDevice("console", w.plan.Console)
	if errors.Is(err, unix.EINVAL) { // of another /dev/pts than ours: it stays without a name
		return nil
	}
	return err
}

func (w *World) openDevice(name, path string) error {
	t, err := cloneTree(path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	w.devices[name] = t
	return at(path, t.restrict(unix.MOUNT_ATTR_RDONLY)) // the inode; what is written to the device passes
}

func (w *World) mountDev() error {
	if err := w.needDir("/dev"); err != nil {
		return err
	}
	if err := w.mountTmpfs("/dev", "0755"); err != nil {
		return err
	}
	for name, t := range w.devices {
		path := filepath.Join("/dev", name)
		if err := writeFile(path, nil, 0o600); err != nil {
			return err
		}
		if err := t.attach(path); err != nil {
			return err
		}
	}
	for name, to := range deviceLinks {
		if err := os.Symlink(to, filepath.Join("/dev", name)); err != nil {
			return &step.Error{Op: "link", Path: "/dev/" + name, Err: step.Errno(err)}
		}
	}
	return errors.Join(
		w.mountInDev("devpts", "/dev/pts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "newinstance", "ptmxmode=0666", "mode=0620"),
		w.mountInDev("tmpfs", "/dev/shm", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode=1777"))
}

func (w *World) mountInDev(kind, path string, attrs int, options ...string) error {
	if err := mkdirAll(path); err != nil {
		return err
	}
	t, err := newFS(kind, attrs, options...)
	if err != nil {
		return at(path, err)
	}
	if kind == "tmpfs" {
		w.shm = path
	}
	return t.attach(path)
}
