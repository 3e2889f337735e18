package mount

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// Steps whose failure means that this system cannot make the jail.
const (
	OpPrivate = "make the mounts private"
	OpProc    = "mount a fresh /proc"
)

// A Tree is a mount, or a tree of mounts, that stands nowhere yet, or one that stands somewhere and was opened.
type Tree struct{ fd int }

// cloneTree copies the mounts at path and below it. A symbolic link at its end is not followed.
func cloneTree(path string) (Tree, error) { return openTree(path, unix.AT_RECURSIVE) }

func openTree(path string, flags uint) (Tree, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW|flags)
	if err != nil {
		return Tree{}, &step.Error{Op: "copy the mounts of", Path: path, Err: err}
	}
	return Tree{fd}, nil
}

// newFS makes a file system that stands nowhere yet. Options are key=value, or a key alone.
func newFS(kind string, attrs int, options ...string) (Tree, error) {
	ctx, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return Tree{}, &step.Error{Op: "make a " + kind, Err: err}
	}
	defer unix.Close(ctx)
	for _, o := range append([]string{"source=" + kind}, options...) {
		if key, value, ok := strings.Cut(o, "="); ok {
			err = unix.FsconfigSetString(ctx, key, value)
		} else {
			err = unix.FsconfigSetFlag(ctx, o)
		}
		if err != nil {
			return Tree{}, &step.Error{Op: "make a " + kind + " with " + o, Detail: fsLog(ctx), Err: err}
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return Tree{}, &step.Error{Op: "make a " + kind, Detail: fsLog(ctx), Err: err}
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return Tree{}, &step.Error{Op: "mount a " + kind, Detail: fsLog(ctx), Err: err}
	}
	return Tree{fd}, nil
}

// fsLog returns what the kernel said about a file system that it would not make.
func fsLog(ctx int) string {
	var lines []string
	buf := make([]byte, 1024)
	for {
		n, err := unix.Read(ctx, buf)
		if err != nil || n == 0 {
			return strings.Join(lines, "; ")
		}
		lines = append(lines, strings.TrimSpace(string(buf[:n])))
	}
}

// attach makes the tree stand at path; it is closed then.
func (t Tree) attach(path string) error {
	defer t.Close()
	return t.move(unix.AT_FDCWD, path)
}

// move makes the tree stand at path, relative to the directory dir, and keeps it open.
func (t Tree) move(dir int, path string) error {
	return step.Wrap("mount at", path, unix.MoveMount(t.fd, "", dir, path, unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// restrict adds mount attributes to every mount of the tree.
func (t Tree) restrict(attrs uint64) error { return t.set(&unix.MountAttr{Attr_set: attrs}) }

func (t Tree) set(attr *unix.MountAttr) error {
	return step.Wrap("restrict mounts", "", unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr))
}

// detach takes away what stands; whoever has it open keeps it.
func (t Tree) detach() error {
	return step.Wrap("unmount", t.path(), unix.Unmount(t.path(), unix.MNT_DETACH))
}

// path is the tree's root, wherever it stands.
func (t Tree) path() string { return fmt.Sprintf("/proc/self/fd/%d", t.fd) }

// Close lets go of the tree, which goes unless it stands somewhere.
func (t Tree) Close() { unix.Close(t.fd) }

// bindReadOnly shows from, read-only, at to as well.
func bindReadOnly(from, to string) error {
	t, err := cloneTree(from)
	if err != nil {
		return err
	}
	if err := t.restrict(unix.MOUNT_ATTR_RDONLY); err != nil {
		t.Close()
		return err
	}
	return t.attach(to)
}

// makeReadOnly restricts the mount at path alone.
func makeReadOnly(path string) error {
	return step.Wrap("make read-only", path, unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}))
}

// OpenPath opens path for mounting with it: no right to read it is needed.
func OpenPath(path string) (Tree, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return Tree{}, &step.Error{Op: "open", Path: path, Err: err}
	}
	return Tree{fd}, nil
}

// at names the path in an error that has none.
func at(path string, err error) error {
	var e *step.Error
	if errors.As(err, &e) && e.Path == "" {
		e.Path = path
	}
	return err
}
