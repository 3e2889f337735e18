package changes

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"golang.org/x/sys/unix"
)

// A program that made a mount namespace or a root of its own, as a sandbox inside does, calls files by other names. What
// it names is looked up from its own root, and then told by the jail's name: the place where one of the jail's mounts
// shows the same directory of the same file system.

// openView chooses the tree in which the caller's paths are looked up.
func (r *request) openView() error {
	r.Lookup = inspect.Lookup{View: r.w.view, Task: r.Call.Task}
	if r.op == OpOpen {
		r.Older = r.w.olderOpen
	}
	id, err := inspect.Identify(r.w.view.Proc, strconv.Itoa(r.Call.Task)+"/root", 0)
	if errors.Is(err, unix.EACCES) { // it hides like its memory
		return errUnnamed
	}
	if err != nil || id == r.w.rootID {
		return err
	}
	r.nested = true
	r.Root, r.Text, err = inspect.RootOf(r.Proc, r.Call.Task)
	return err
}

// checkBase makes sure that base, as the kernel spells what a descriptor or the working directory is, leads there from the
// program's root too: it may lie in a mount that stands nowhere.
func (r *request) checkBase(dirfd int32, base string) error {
	want, err := inspect.Identify(r.Proc, strconv.Itoa(r.Call.Task)+inspect.BaseName(dirfd), 0)
	if err != nil {
		return err
	}
	fd, err := r.OpenPlain(base)
	if err != nil {
		return errUnnamed
	}
	defer unix.Close(fd)
	if id, err := inspect.Identify(fd, "", unix.AT_EMPTY_PATH); err != nil || id != want {
		return errUnnamed
	}
	return nil
}

func (r *request) closeView() {
	if r.nested && r.Root >= 0 {
		unix.Close(r.Root)
	}
}

// translate gives f, of the program's own view, the name that it has in the jail. It takes over the descriptor.
func (r *request) translate(f inspect.FilePath) (inspect.FilePath, error) {
	defer unix.Close(f.Dir)
	dir, err := inspect.Identify(f.Dir, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return inspect.FilePath{}, err
	}
	own, err := mountinfo.Of(r.Proc, strconv.Itoa(r.Call.Task))
	if err != nil {
		return inspect.FilePath{}, err
	}
	from := mountinfo.Line{}
	for _, m := range own {
		if m.ID == dir.Mount && mountinfo.Within(path.Dir(f.Path), m.Point) {
			from = m
		}
	}
	inside := path.Join(from.Root, path.Dir(f.Path)[len(strings.TrimSuffix(from.Point, "/")):])
	jails, err := mountinfo.Of(r.Proc, strconv.Itoa(r.w.init))
	if err != nil {
		return inspect.FilePath{}, err
	}
	for _, m := range jails {
		if m.Device != from.Device || !mountinfo.Within(inside, m.Root) {
			continue
		}
		at := path.Join(m.Point, inside[len(strings.TrimSuffix(m.Root, "/")):])
		if !r.w.watches(path.Join(at, f.Name)) {
			continue
		}
		fd, err := r.w.view.OpenPlain(at)
		if err != nil {
			continue
		}
		if dir.IsAt(fd, "") {
			return inspect.FilePath{Path: path.Join(at, f.Name), Dir: fd, Name: f.Name}, nil
		}
		unix.Close(fd)
	}
	if from.Kind == "overlay" { // its layers may lie in what is watched
		return inspect.FilePath{}, errUnnamed
	}
	return inspect.FilePath{}, errPass // a file system of its own, /tmp in memory say
}
