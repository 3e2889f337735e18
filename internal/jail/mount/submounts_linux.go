package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// What is mounted below an overlay is an overlay of its own: its lowers are what the outer one's have at its place, and the mount.
// Who records writes into such mounts, so who replays must be able to, and must not change the host's.

// submountsDir holds, beside the upper layer of an overlay, those of the mounts below it.
const submountsDir = "mounts"

// copiedEntry is what each file and each directory of a mount that is copied counts for, in bytes, beside what it holds.
const copiedEntry = 4096

var errTooLarge = errors.New("it is too large")

// lowersAt returns what an overlay of lowers has at rel: as many directories as show through it, or one file.
func lowersAt(lowers []string, rel string) []string {
	for name := range strings.SplitSeq(rel, "/") {
		e := &mergedEntry{name: name}
		for i, l := range lowers {
			at := filepath.Join(l, name)
			if info, err := os.Lstat(at); err == nil {
				e.add(fs.FileInfoToDirEntry(info), layerDir{at, at}, i == len(lowers)-1)
			}
		}
		lowers = nil
		for _, l := range e.layers {
			lowers = append(lowers, l.path)
		}
	}
	return lowers
}

// MakeLayers makes the directories for the layers of mounts below overlays.
func (p *Plan) MakeLayers() error {
	for _, t := range p.Targets {
		if !t.Mount {
			continue
		}
		upper, work := t.Overlay.Upper, t.Overlay.Work
		if err := errors.Join(os.MkdirAll(upper, 0o700), os.MkdirAll(work, 0o700), likeMount(upper, t.Path)); err != nil {
			return step.Wrap("make a layer of", t.Path, err)
		}
	}
	return nil
}

// likeMount gives an upper layer the owner and the mode of what is mounted at path, for its own are those that are seen. Where the
// owner is another's to give, it gets the mode that lets the caller do what it may do there.
func likeMount(upper, path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return nil // it does not answer: neither will it be a layer
	}
	mode := st.Mode() & (os.ModePerm | os.ModeSticky | os.ModeSetgid)
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && os.Chown(upper, int(sys.Uid), int(sys.Gid)) != nil {
		mode &^= 0o700
		for _, can := range []uint32{unix.R_OK, unix.W_OK, unix.X_OK} {
			if unix.Access(path, can) == nil {
				mode |= os.FileMode(can) << 6
			}
		}
	}
	return os.Chmod(upper, mode)
}

// mountSubmount shows a mount of the host's as what can be changed, or read-only.
func (w *World) mountSubmount(t *Target, s *source) error {
	if s.err != nil {
		return w.staysReadOnly(t, s, fmt.Errorf("cannot be opened (%w)", step.Errno(s.err)))
	}
	if slices.Contains(w.plan.Masks, t.Path) { // what is hidden must not be copied
		_, err := s.show(t.Path)
		return err
	}
	return w.mountOverlay(t, s)
}

// staysReadOnly shows a mount as it is, for err. Where its place is gone since, nothing is shown.
func (w *World) staysReadOnly(t *Target, s *source, err error) error {
	if stands, errShow := s.show(t.Path); !stands {
		return errShow
	}
	w.NotCovered = append(w.NotCovered, "changes of "+t.Path+": read-only inside, as it "+err.Error())
	return nil
}

func isFile(t Tree) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstat(t.fd, &st)
	return st.Mode&unix.S_IFMT != unix.S_IFDIR, err
}

// mountFile mounts a copy of the file that is mounted at t.
func mountFile(t *Target, s *source) error {
	dir := filepath.Join(s.layers.path(), s.upper)
	to := filepath.Join(dir, filepath.Base(t.Path))
	if err := copyMounted(s.lowers[0].path(), to, dir); err != nil {
		return fmt.Errorf("cannot be copied (%w)", step.Errno(err))
	}
	own, err := cloneTree(to)
	if err != nil {
		return err
	}
	if err := own.restrict(t.Flags | unix.MOUNT_ATTR_NODEV); err != nil {
		own.Close()
		return at(t.Path, err)
	}
	return own.attach(t.Path)
}

// copyMounted copies a regular file to a new one that has the owner and the permissions of like.
func copyMounted(from, to, like string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	switch {
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return unix.EOPNOTSUPP
	case st.Size() > MaxCopied:
		return errTooLarge
	}
	if err := copyOpened(in, st, to); err != nil {
		return err
	}
	as, err := os.Stat(like)
	if err != nil {
		return err
	}
	if sys, ok := as.Sys().(*syscall.Stat_t); ok {
		os.Chown(to, int(sys.Uid), int(sys.Gid)) // likeMount found whether that may be
	}
	return os.Chmod(to, as.Mode().Perm())
}

// mountCopy mounts a copy of a mount whose file system cannot be a layer, in place of an overlay that failed.
func (w *World) mountCopy(t *Target, s *source) error {
	upper := filepath.Join(s.layers.path(), s.upper)
	entries, err := os.ReadDir(upper)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := removeLayer(filepath.Join(upper, e.Name())); err != nil {
			return err
		}
	}
	return (&split{w: w, target: t, source: s, room: MaxCopied, copies: true}).mount()
}

// findSubmounts makes the host's mounts below overlays targets, and gives each overlay the host's mount points below it that
// are none, and those below its lowers.
func (p *Plan) findSubmounts() error {
	mounts, err := mountinfo.Seen("/proc/self/mountinfo")
	if err != nil {
		return listError("/proc/self/mountinfo", err)
	}
	for i := range mounts { // outer ones first
		m := &mounts[i]
		if t := p.targetAbove(m.Point); t != nil && t.Overlay != nil && t.Path != m.Point {
			p.addSubmount(t, m)
		}
	}
	p.sortTargets()
	points := mountinfo.PointsOf(mounts)
	for i := range p.Targets {
		p.Targets[i].findCovered(points)
	}
	return nil
}

func listError(path string, err error) error {
	return &step.Error{Op: "list the mounts of", Path: path, Err: step.Errno(err)}
}

// kernelKinds are file systems that hold no files but the kernel's own things, or none before they are looked for.
var kernelKinds = []string{
	"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl",
	"hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
}

// addSubmount has a mount below the overlay t changed in a layer of its own, as t is, unless nobody could change it. Where the
// lowers of t hide it, nothing is mounted.
func (p *Plan) addSubmount(t *Target, m *mountinfo.Line) {
	closed := closedAbove(t.Path, m.Point) != m.Point
	_, dead := os.Lstat(m.Point) // it is there: it does not answer, or not us
	if closed || dead != nil || m.Flags&unix.MOUNT_ATTR_RDONLY != 0 || slices.Contains(kernelKinds, m.Kind) {
		t.Submounts = addOutermost(t.Submounts, t.Path, m.Point)
		return
	}
	lowers := lowersAt(t.Overlay.Lowers, m.Point[len(t.Path)+1:])
	if !slices.Contains(lowers, m.Point) {
		return
	}
	dir := filepath.Join(filepath.Dir(t.Overlay.Upper), submountsDir, strconv.Itoa(len(p.Targets)))
	o := &Overlay{Target: m.Point, Lowers: lowers, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	p.Targets = append(p.Targets, Target{Path: m.Point, Overlay: o, Mount: true, Flags: m.Flags})
}

// findCovered finds which of the points are below lowers of t.
func (t *Target) findCovered(points []string) {
	if t.Overlay == nil {
		return
	}
	for _, l := range t.Overlay.Lowers {
		for _, m := range points {
			if m != l && mountinfo.Within(m, l) {
				t.Covered = addOutermost(t.Covered, l, m)
			}
		}
	}
}

// maxAlone bounds the lowers that are handed over alone: they travel in one packet.
const maxAlone = 200

// OpenAlone opens the lowers that mounts of the host cover without those, and returns them for the init, which gets them in this order.
//
// In a user namespace the host's mounts are locked, and overlayfs refuses a lower directory with a locked mount below it. Who may mount on
// the host can copy the mount that a lower lies in alone. For everybody else the init splits the overlay.
func (p *Plan) OpenAlone() (files []*os.File) {
	for i := range p.Targets {
		t := &p.Targets[i]
		alone, ok := t.openAlone()
		if !ok || len(files)+len(alone) > maxAlone {
			for _, f := range alone {
				f.Close()
			}
			t.Alone = nil
			continue
		}
		files, t.Covered = append(files, alone...), nil
	}
	return files
}

func (t *Target) openAlone() (alone []*os.File, ok bool) {
	if len(t.Covered) == 0 {
		return nil, true
	}
	for _, l := range t.Overlay.Lowers {
		if !slices.ContainsFunc(t.Covered, func(m string) bool { return m != l && mountinfo.Within(m, l) }) {
			continue
		}
		tree, err := openTree(l, 0)
		if err != nil {
			return alone, false
		}
		alone, t.Alone = append(alone, os.NewFile(uintptr(tree.fd), l)), append(t.Alone, l)
		if tree.set(&unix.MountAttr{Propagation: unix.MS_PRIVATE}) != nil {
			return alone, false
		}
	}
	return alone, true
}

// addOutermost adds a mount point below top, unless it lies below top in one of list. What the caller cannot look into
// stands for the mounts in it: they cannot be copied by their paths, and it is shown as they are, whole.
func addOutermost(list []string, top, point string) []string {
	if slices.ContainsFunc(list, func(s string) bool { return s != top && mountinfo.Within(s, top) && mountinfo.Within(point, s) }) {
		return list
	}
	return append(list, closedAbove(top, point))
}

// closedAbove returns the outermost directory between top and point that the caller may not list or enter, or point.
func closedAbove(top, point string) string {
	closed := point
	for dir := filepath.Dir(point); dir != top && mountinfo.Within(dir, top); dir = filepath.Dir(dir) {
		if errors.Is(unix.Access(dir, unix.R_OK|unix.X_OK), unix.EACCES) {
			closed = dir
		}
	}
	return closed
}

// Below returns what reports whether something is mounted below a directory now, on the host, so that an overlay of that may have to be split.
func Below() (func(dir string) bool, error) {
	points, err := mountinfo.Points("/proc/self/mountinfo")
	if err != nil {
		return nil, &os.PathError{Op: "list mounts", Path: "/proc/self/mountinfo", Err: step.Errno(err)}
	}
	return func(dir string) bool {
		dir = resolve(dir)
		return slices.ContainsFunc(points, func(p string) bool { return p != dir && mountinfo.Within(p, dir) })
	}, nil
}

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
