package jail

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A program that made a mount namespace or a root of its own, as a sandbox inside does, calls files by other names. What
// it names is looked up from its own root, and then told by the jail's name: the place where one of the jail's mounts
// shows the same directory of the same file system.

// openView chooses the tree in which the caller's paths are looked up.
func (r *request) openView() error {
	r.lookup = lookup{view: r.w.view, pid: int(r.PID)}
	if r.op == OpOpen {
		r.older = r.w.olderOpen
	}
	id, err := identify(r.w.view.proc, strconv.Itoa(r.pid)+"/root", 0)
	if errors.Is(err, unix.EACCES) { // it hides like its memory
		return errUnnamed
	}
	if err != nil || id == r.w.rootID {
		return err
	}
	r.nested = true
	r.root, r.view.text, err = rootOf(r.proc, r.pid)
	return err
}

// checkBase makes sure that base, as the kernel spells what a descriptor or the working directory is, leads there from the
// program's root too: it may lie in a mount that stands nowhere.
func (r *request) checkBase(dirfd int32, base string) error {
	want, err := identify(r.proc, strconv.Itoa(r.pid)+baseName(dirfd), 0)
	if err != nil {
		return err
	}
	fd, err := r.openPlain(base)
	if err != nil {
		return errUnnamed
	}
	defer unix.Close(fd)
	if id, err := identify(fd, "", unix.AT_EMPTY_PATH); err != nil || id != want {
		return errUnnamed
	}
	return nil
}

func (r *request) closeView() {
	if r.nested && r.root >= 0 {
		unix.Close(r.root)
	}
}

// translate gives f, of the program's own view, the name that it has in the jail. It takes over the descriptor.
func (r *request) translate(f FilePath) (FilePath, error) {
	defer unix.Close(f.Dir)
	dir, err := identify(f.Dir, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return FilePath{}, err
	}
	own, err := mountsOf(r.proc, strconv.Itoa(r.pid))
	if err != nil {
		return FilePath{}, err
	}
	from := mountLine{}
	for _, m := range own {
		if m.id == dir.mount && within(path.Dir(f.Path), m.point) {
			from = m
		}
	}
	inside := path.Join(from.root, path.Dir(f.Path)[len(strings.TrimSuffix(from.point, "/")):])
	jails, err := mountsOf(r.proc, strconv.Itoa(r.w.init))
	if err != nil {
		return FilePath{}, err
	}
	for _, m := range jails {
		if m.device != from.device || !within(inside, m.root) {
			continue
		}
		at := path.Join(m.point, inside[len(strings.TrimSuffix(m.root, "/")):])
		if !r.w.watches(path.Join(at, f.Name)) {
			continue
		}
		fd, err := r.w.view.openPlain(at)
		if err != nil {
			continue
		}
		if dir.isAt(fd, "") {
			return FilePath{Path: path.Join(at, f.Name), Dir: fd, Name: f.Name}, nil
		}
		unix.Close(fd)
	}
	if from.kind == "overlay" { // its layers may lie in what is watched
		return FilePath{}, errUnnamed
	}
	return FilePath{}, errPass // a file system of its own, /tmp in memory say
}
