package changes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"golang.org/x/sys/unix"
)

// A request is one notified call while its paths are looked for.
type request struct {
	*notify.Call
	w      *Watch
	kind   *kind
	op     Op
	ends   [2]inspect.Ending
	empty  bool // an empty first path stands for the descriptor
	cuts   bool // an open cuts the file
	makes  bool // an open makes the file, or fails: what stands there is not opened
	inRoot bool // the directory is the root that paths start from
	nested bool // the program has another root than the jail's
	inspect.Lookup
}

// errStarved is want of descriptors or memory: the call must not go on as if nothing had been missed.
var errStarved = errors.New("no resources to find out what a call changes")

// look says what the call of n will change. It is nil for a call that can go on at once. An error that is errStarved
// or errOlder means that the call must fail.
func (w *Watch) look(n *notify.Call) (*Call, error) {
	r := &request{Call: n, w: w, kind: kinds[uint32(n.Nr)]}
	if r.kind == nil {
		return nil, nil
	}
	c, err := r.find()
	var errno unix.Errno
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, inspect.ErrOlder):
		return nil, err
	case errors.As(err, &errno) && slices.Contains(starved, errno):
		return nil, fmt.Errorf("%w: %w", errStarved, errno)
	case errors.Is(err, unix.EPERM), errors.Is(err, errUnnamed), r.nested && errors.Is(err, unix.EACCES):
		w.Unnamed.Add(1)
	}
	return nil, nil // the call fails by itself, or changes nothing that has a name
}

var (
	starved    = []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS}
	errUnnamed = errors.New("a path that cannot be told")
	errPass    = errors.New("nothing that is watched")
)

// find names the paths of the call. The error is errPass where none is watched.
func (r *request) find() (*Call, error) {
	r.op = r.kind.op
	if err := r.readFlags(); err != nil {
		return nil, err
	}
	var texts [2]string
	for i, p := range r.kind.paths {
		var err error
		if texts[i], err = r.text(p); err != nil {
			return nil, err
		}
	}
	if isDevice[texts[0]] {
		return nil, errPass
	}
	if err := r.openView(); err != nil {
		return nil, err
	}
	defer r.closeView()
	c := &Call{Op: r.op, Cuts: r.cuts || r.op == OpTruncate || r.op == OpOpen && r.kind.flags == noFlags, PID: r.Call.Task, Paths: make([]inspect.FilePath, 0, 2)}
	for i := range r.kind.paths {
		f, err := r.path(i, texts[i])
		if err == nil && f.Dir >= 0 && !r.w.watches(f.Path) {
			unix.Close(f.Dir)
			err = errPass // and not the other path either: no rename and no link leads from a mount to another
		}
		if err != nil {
			c.close()
			return nil, err
		}
		c.Paths = append(c.Paths, f)
	}
	return c, nil
}

func (c *Call) close() {
	for _, p := range c.Paths {
		if p.Dir >= 0 {
			unix.Close(p.Dir)
		}
	}
}

// path names the ith path of the call, which the program spelled so.
func (r *request) path(i int, text string) (f inspect.FilePath, err error) {
	dirfd := int32(unix.AT_FDCWD)
	if arg := r.kind.paths[i]; arg.dir >= 0 {
		dirfd = int32(r.Args[arg.dir])
	}
	switch {
	case r.inRoot && text != "":
		f, err = r.findBelow(dirfd, text)
	case text != "":
		if text[0] != '/' {
			base, err := r.Base(dirfd)
			if err == nil && r.nested {
				err = r.checkBase(dirfd, base)
			}
			if err != nil {
				return f, err
			}
			text = base + "/" + text
		}
		f, err = r.Find(text, r.ends[i])
	case i == 0 && (r.empty || r.kind.paths[0].path == ofFD):
		f, err = r.Find(opened(dirfd), inspect.TheFile)
	default:
		return f, unix.ENOENT
	}
	if errors.Is(err, inspect.ErrNoName) && r.op == OpLink && i == 0 {
		return inspect.FilePath{Dir: -1}, nil // from O_TMPFILE, say
	}
	if err == nil && r.op == OpOpen && !r.makes && r.w.older(f) {
		unix.Close(f.Dir)
		return inspect.FilePath{}, inspect.ErrOlder
	}
	if err == nil && r.nested {
		return r.translate(f)
	}
	return f, err
}

// opened spells what a descriptor stands for.
func opened(dirfd int32) string { return "/proc/self" + inspect.BaseName(dirfd) }

// text reads a path from the program.
func (r *request) text(arg pathArg) (string, error) {
	switch {
	case arg.path == ofFD:
		return "", nil
	case r.kind.flags == sockAddr:
		return r.socketText(r.Args[arg.path], r.Args[r.kind.at])
	}
	return inspect.ReadString(r.Call.Task, r.Args[arg.path], &r.w.buf)
}

// socketText reads the path of a struct sockaddr_un; an address of another family, or an abstract one, makes no file.
func (r *request) socketText(addr, size uint64) (string, error) {
	if size == 0 || size > unix.SizeofSockaddrUnix {
		return "", errPass
	}
	b := r.w.buf[:size]
	if err := inspect.ReadMemory(r.Call.Task, addr, b); err != nil {
		return "", err
	}
	if path, ok := inspect.SocketPath(b); ok {
		return path, nil
	}
	return "", errPass
}

// readFlags finds out what the call's flags make of it.
func (r *request) readFlags() error {
	for i, p := range r.kind.paths {
		r.ends[i] = p.end
	}
	flags := r.Args[r.kind.at]
	switch r.kind.flags {
	case openHow:
		return r.readHow(flags)
	case openFlags:
		r.openFlags(flags)
	case atFlags:
		if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
			r.ends[0] = inspect.TheLink
		}
		r.empty = flags&unix.AT_EMPTY_PATH != 0
	case unlinkFlags:
		if flags&unix.AT_REMOVEDIR != 0 {
			r.op = OpRmdir
		}
	case renameFlags:
		if flags&unix.RENAME_EXCHANGE != 0 {
			r.op = OpExchange
		}
	case linkFlags:
		if flags&unix.AT_SYMLINK_FOLLOW != 0 {
			r.ends[0] = inspect.TheFile
		}
		r.empty = flags&unix.AT_EMPTY_PATH != 0
	}
	return nil
}

func (r *request) openFlags(flags uint64) {
	const exclusive = unix.O_CREAT | unix.O_EXCL
	if r.makes = flags&exclusive == exclusive; r.makes || flags&unix.O_NOFOLLOW != 0 {
		r.ends[0] = inspect.TheLink
	}
	r.cuts = flags&unix.O_TRUNC != 0
}

// readHow does the same for the struct open_how of openat2.
func (r *request) readHow(addr uint64) error {
	const size = 24 // bytes: flags, mode, resolve
	b := r.w.buf[:size]
	if err := inspect.ReadMemory(r.Call.Task, addr, b); err != nil {
		return err
	}
	flags, resolve := binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[16:])
	if flags&WriteFlags == 0 || flags&noNameFlags != 0 {
		return errPass
	}
	r.openFlags(flags)
	r.inRoot = resolve&unix.RESOLVE_IN_ROOT != 0
	return nil
}

// findBelow looks a path up as RESOLVE_IN_ROOT does.
func (r *request) findBelow(dirfd int32, text string) (inspect.FilePath, error) {
	base, err := r.Base(dirfd)
	if err != nil {
		return inspect.FilePath{}, err
	}
	root, err := r.OpenPlain(base)
	if err != nil {
		return inspect.FilePath{}, err
	}
	defer unix.Close(root)
	below := r.Lookup
	below.Root, below.NoProc = root, true
	below.Text = strings.TrimSuffix(r.Text, "/") + base
	f, err := below.Find("/"+text, r.ends[0])
	f.Path = strings.TrimSuffix(base, "/") + f.Path
	return f, err
}

// isDevice are the devices that programs open for writing most often; our /dev cannot be changed.
var isDevice = map[string]bool{"/dev/null": true, "/dev/tty": true, "/dev/zero": true}

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
