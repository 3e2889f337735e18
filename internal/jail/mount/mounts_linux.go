package mount

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// A World is the file system as the program sees it, while the init builds it on its own copy of the host's mounts:
//
//  1. everything that will be shown through another mount is opened or copied
//  2. every mount becomes read-only and loses its devices
//  3. fresh /proc, /run, /dev
//  4. the targets, outer ones first
//  5. files that exist inside only, then masks
//
// Mounts that came from the host are locked for the new user namespace: what is covered cannot be uncovered, and
// neither from a nested one.
type World struct {
	plan       *Plan
	Opened     map[string]int // targets, by path, once they stand
	Layers     map[string]int // of overlays, by LayerOf: what an overlay covers, read-only like all that the program may not change
	NotCovered []string

	heads []int // see Plan.Behind
	alone []int // lowers of targets, from Plan.OpenAlone
	proc  Tree  // fresh, until it stands

	sources map[string]*source // by target
	devices map[string]Tree
	own     []string // file systems of ours: directories can be made there; seal makes them read-only
	shm     string   // of ours too, and the program may write there
	oldRoot *Tree    // where the root was replaced
}

// NewWorld begins a world with what every one has, and what most often cannot be had.
func NewWorld() (*World, error) {
	w := &World{Opened: make(map[string]int), Layers: make(map[string]int), sources: make(map[string]*source)}
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") // what is mounted here stays from the host, and what is mounted there from us
	if err != nil {
		err = &step.Error{Op: OpPrivate, Err: err}
	} else {
		w.proc, err = freshProc()
	}
	return w, err
}

// Build makes it by a plan, with the descriptors of its files (File.Behind), and behind them what came of Plan.OpenAlone.
func (w *World) Build(plan *Plan, handed []int) error {
	heads := len(plan.Behind())
	w.plan, w.heads, w.alone = plan, handed[:heads], handed[heads:]
	for _, step := range []func() error{
		w.openSources, w.openDevices, w.restrictAll,
		w.mountProc, w.mountRun, w.mountDev,
		w.mountTargets, w.placeFiles, w.mask, w.seal,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// restrictAll also takes away devices: what the program may open of them lies in its own /dev.
func (w *World) restrictAll() error {
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV}
	return step.Wrap("make read-only", "/", unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, attr))
}

// mountProc makes read-only what belongs to no process: a uid 0 could change the host with it, capabilities or not. So is
// process 1, whose files are the caller's like the program's own.
func (w *World) mountProc() error {
	if err := w.proc.attach("/proc"); err != nil {
		return asProc(err)
	}
	w.limitPIDs()
	if err := forbidCgroups(); err != nil {
		return err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return &step.Error{Op: "list", Path: "/proc", Err: step.Errno(err)}
	}
	for _, e := range entries {
		path := filepath.Join("/proc", e.Name())
		if !procWritable(e) {
			continue
		}
		if err := bindReadOnly(path, path); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

const maxPIDs = 16384 // processes and threads inside at once

// limitPIDs holds a fork bomb. Before Linux 6.14 the limit is the whole machine's, and a uid 0 may write it: not ours.
func (w *World) limitPIDs() {
	if !kernelAtLeast(6, 14) {
		w.NotCovered = append(w.NotCovered, "the number of processes inside is not limited: Linux 6.14 and newer do")
		return
	}
	if err := os.WriteFile("/proc/sys/kernel/pid_max", strconv.AppendInt(nil, maxPIDs, 10), 0); err != nil {
		w.NotCovered = append(w.NotCovered, "the number of processes inside is not limited: "+err.Error())
	}
}

// procWritable tells what of /proc could be written to but for the program's own processes, which are numbers and links.
func procWritable(e os.DirEntry) bool {
	if e.Name() == "1" {
		return true
	}
	if c := e.Name()[0]; c >= '0' && c <= '9' || e.Type()&os.ModeSymlink != 0 {
		return false
	}
	info, err := e.Info()
	return err == nil && (info.IsDir() || info.Mode().Perm()&0o222 != 0)
}

// forbidCgroups keeps the program from namespaces of control groups. In one of its own, which a nested user namespace
// may make, it could mount the groups writable, the recorder's among them, and freeze or kill what is in there.
func forbidCgroups() error {
	const path = "/proc/sys/user/max_cgroup_namespaces"
	err := os.WriteFile(path, []byte("0"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without them
		return &step.Error{Op: "forbid namespaces of control groups", Path: path, Err: step.Errno(err)}
	}
	return nil
}

// freshProc shows the processes inside and no others. The kernel refuses where the host's own /proc is partly covered.
func freshProc() (Tree, error) {
	t, err := newFS("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	return t, asProc(err)
}

func asProc(err error) error {
	var e *step.Error
	if errors.As(err, &e) {
		e.Op = OpProc
	}
	return err
}

// mountTmpfs makes a small empty file system stand at path; seal makes it read-only.
func (w *World) mountTmpfs(path, mode string) error {
	t, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode="+mode)
	if err != nil {
		return at(path, err)
	}
	if err := t.attach(path); err != nil {
		return err
	}
	w.own = append(w.own, path)
	return nil
}

const (
	emptyDir  = "/run/tapedeck/empty" // what a masked directory shows
	emptyFile = "/run/tapedeck/none"  // and a masked file

	// ignoredDir is what a masked directory shows that has a .gitignore: Git would take an empty one for litter, and its clean
	// would fail to remove it.
	ignoredDir = "/run/tapedeck/ignored"
	ignoreFile = ".gitignore"
)

// mountRun hides the host's services and gives our own files their place.
func (w *World) mountRun() error {
	if err := w.needDir("/run"); err != nil {
		return err
	}
	if err := w.mountTmpfs("/run", "0755"); err != nil {
		return err
	}
	if err := mkdirAll(emptyDir); err != nil {
		return err
	}
	if err := mkdirAll(ignoredDir); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(ignoredDir, ignoreFile), nil, []byte("*\n"), 0o444); err != nil {
		return err
	}
	if err := writeFile(emptyFile, nil, nil, 0o666); err != nil {
		return err
	}
	for _, path := range []string{emptyDir, filepath.Join(ignoredDir, ignoreFile), ignoredDir, emptyFile} {
		if err := os.Chtimes(path, maskedSince, maskedSince); err != nil { // a listing says the same in every run
			return &step.Error{Op: "set the times of", Path: path, Err: step.Errno(err)}
		}
	}
	return nil
}

// maskedSince is when what covers a masked path was last written.
var maskedSince = time.Unix(0, 0)

// writeFile makes a file of exactly this mode, whatever the caller's umask, of what can be read from head, nil for nothing, and data behind it.
func writeFile(path string, head *os.File, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return step.Wrap("write", path, err)
	}
	defer f.Close()
	if head != nil {
		_, err = io.Copy(f, io.NewSectionReader(head, 0, math.MaxInt64)) // its position is the recorder's too
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	return step.Wrap("write", path, err)
}

// placeFiles writes the files under /run and shows them over others.
func (w *World) placeFiles() error {
	for _, f := range w.plan.Files {
		if err := mkdirAll(filepath.Dir(f.Path)); err != nil {
			return err
		}
		var head *os.File
		if f.Behind > 0 {
			head, w.heads = os.NewFile(uintptr(w.heads[0]), f.Path), w.heads[1:]
		}
		err := writeFile(f.Path, head, f.Data, 0o444)
		head.Close() // of nil does nothing
		if err != nil {
			return err
		}
		for _, o := range f.Over {
			if err := bindReadOnly(f.Path, o); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
	return nil
}

// mkdirAll makes directories of exactly mode 0755.
func mkdirAll(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	if err := mkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	err := os.Mkdir(path, 0o755)
	if err == nil {
		err = os.Chmod(path, 0o755)
	}
	return step.Wrap("make", path, err)
}

// mask covers what must not be seen. What an overlay hides already needs none.
func (w *World) mask() error {
	for _, m := range w.plan.Masks {
		st, err := os.Lstat(m)
		switch {
		case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
			continue
		case err != nil:
			return &step.Error{Op: "mask", Path: m, Err: step.Errno(err)}
		}
		if err := bindReadOnly(blank(m, st), m); err != nil {
			return err
		}
	}
	return nil
}

// blank is what shows at a masked path, which st is of.
func blank(path string, st os.FileInfo) string {
	if !st.IsDir() {
		return emptyFile
	}
	if _, err := os.Lstat(filepath.Join(path, ignoreFile)); err == nil {
		return ignoredDir
	}
	return emptyDir
}

// seal makes our own file systems read-only and takes a replaced root away.
func (w *World) seal() error {
	for _, path := range slices.Backward(w.own) {
		if err := makeReadOnly(path); err != nil {
			return err
		}
	}
	if w.oldRoot == nil {
		return nil
	}
	defer w.oldRoot.Close()
	return w.oldRoot.detach()
}

// kernelAtLeast reports whether Linux is that new.
func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	f := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	if len(f) < 3 {
		return false
	}
	a, err1 := strconv.Atoi(f[0])
	b, err2 := strconv.Atoi(f[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

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
		if err := writeFile(path, nil, nil, 0o600); err != nil {
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
