package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const createFlags = unix.O_CREAT | unix.O_WRONLY

// created is a call that makes a file.
func created(path string) string { return call(unix.SYS_OPENAT, cwd, path, createFlags, 0o644) }

// TestWatchOverlays: what a program changes through overlays, over a root that had to be replaced too.
func TestWatchOverlays(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	o := overlay(t, dir)
	mustWrite(t, filepath.Join(o.Lowers[0], "a/file"), "content")
	for _, target := range []string{o.Target, "/nowhere on the host/target"} {
		o.Target = target
		c := callsConfig(t, dir, created("a/file"), created("b"), call(unix.SYS_RENAMEAT2, cwd, "b", cwd, "a/b", 0), created("../other"))
		c.Dir, c.Writable, c.Overlays = target, nil, []mount.Overlay{o}
		w := &witness{base: target}
		c.Watch = w
		run(t, c, nil).want(t, ok(3)+"EROFS\n")
		w.want(t, "open a/file", "open b", "rename b a/b")
		if err := mount.EmptyLayers([]mount.Overlay{o}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWatchPlaces: only what the program may change is told of, and each place by the name that it has inside.
func TestWatchPlaces(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	home, masked := filepath.Join(dir, "home"), filepath.Join(dir, "home/secret")
	work, beside := filepath.Join(home, "work"), filepath.Join(dir, "beside")
	for _, d := range []string{work, masked, beside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := callsConfig(t, home, created(work+"/a"), created("b"), created(masked+"/c"), created(beside+"/d"),
		call(unix.SYS_FCHMODAT, cwd, work, 0o700), call(unix.SYS_FCHMODAT, cwd, home, 0o700),
		call(unix.SYS_RENAMEAT2, cwd, "b", cwd, beside+"/b", 0), call(unix.SYS_UNLINKAT, cwd, masked, unix.AT_REMOVEDIR))
	c.Writable, c.Masks = []string{home, work}, []string{masked}
	w := &witness{base: dir}
	c.Watch = w
	run(t, c, nil).want(t, "ok\nok\nEROFS\nEROFS\nok\nok\nEXDEV\nEBUSY\n")
	w.want(t, "open home/work/a", "open home/b", "mode home/work")
}

// TestWatchNested: a sandbox inside, with mounts and a root of its own, is told of by the jail's names.
func TestWatchNested(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("a uid 0 without capabilities cannot make namespaces")
	}
	dir := watchDir(t)
	mnt := filepath.Join(dir, "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	c := callsConfig(t, dir,
		call(unix.SYS_MOUNT, dir+"/sub", "/mnt", "", unix.MS_BIND|unix.MS_REC, 0), created("/mnt/bound"), created("/mnt/deep/bound"),
		call(unix.SYS_MOUNT, "tmpfs", mnt, "tmpfs", 0, 0), created(mnt+"/own"), created("mnt/own"),
		call(unix.SYS_CHDIR, "/mnt"), created("relative"), created("../mnt/deep/relative"),
		call(unix.SYS_CHROOT, "."), created("/rooted"), call(unix.SYS_MKDIRAT, cwd, "../../../deep/rooted", 0o755))
	c.Argv, c.Env[0] = append([]string{"helper", "calls"}, c.Argv[1:]...), helperVar+"=nest"
	w := &witness{base: dir}
	c.Watch = w
	var j *Jail
	run(t, c, func(started *Jail) { j = started }).want(t, ok(12))
	checkUnnamed(t, j, 0)
	w.want(t, "open sub/bound", "open sub/deep/bound", "open sub/relative", "open sub/deep/relative", "open sub/rooted", "mkdir sub/deep/rooted")
}

// TestWatchNestedUnnamed: what a nested sandbox changes through an overlay of its own, or through a mount that stands
// nowhere, is counted.
func TestWatchNestedUnnamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("a uid 0 without capabilities cannot make namespaces")
	}
	dir := watchDir(t)
	c := callsConfig(t, dir,
		call(unix.SYS_MKDIRAT, cwd, "upper", 0o755), call(unix.SYS_MKDIRAT, cwd, "work", 0o755),
		call(unix.SYS_MOUNT, "overlay", "/mnt", "overlay", 0, "userxattr,lowerdir=sub,upperdir=upper,workdir=work"), created("/mnt/new"),
		callAs("t", unix.SYS_OPEN_TREE, cwd, "sub", unix.OPEN_TREE_CLONE), call(unix.SYS_OPENAT, fdOf("t"), "free", createFlags, 0o644))
	c.Argv, c.Env[0] = append([]string{"helper", "calls"}, c.Argv[1:]...), helperVar+"=nest"
	w := &witness{base: dir}
	c.Watch = w
	var j *Jail
	run(t, c, func(started *Jail) { j = started }).want(t, ok(6))
	checkUnnamed(t, j, 2)
	w.want(t, "mkdir upper", "mkdir work")
}

func checkUnnamed(t *testing.T, j *Jail, want int64) {
	t.Helper()
	if n := j.Unnamed(); n != want {
		t.Errorf("%d calls without names, want %d", n, want)
	}
}

// helperNest runs the helper of its first argument in user and mount namespaces of their own.
func helperNest(args []string) int {
	cmd := exec.Command("/proc/self/exe", args[1:]...)
	cmd.Env = append(os.Environ(), helperVar+"="+args[0])
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// unreadableVar names, for a user who is not root, a copy of this binary that belongs to root and cannot be read.
const unreadableVar = "JAIL_TEST_UNREADABLE"

// TestWatchUnreadable: a program whose file may be executed but not read, and is another's, hides its memory. Its calls go
// on and are counted.
func TestWatchUnreadable(t *testing.T) {
	t.Parallel()
	exe := os.Getenv(unreadableVar)
	if exe == "" {
		t.Skip("needs a program of root's: runs in TestUnprivileged")
	}
	dir := watchDir(t)
	w := &witness{base: dir}
	c := callsConfig(t, dir, created("new"), created("other"))
	c.Path, c.Watch = exe, w
	var j *Jail
	run(t, c, func(started *Jail) { j = started }).want(t, ok(2))
	checkUnnamed(t, j, 2)
	w.want(t)
}

// TestSplitWatched: the same through the several overlays of a split one.
func TestSplitWatched(t *testing.T) {
	dir := coveredTree(t)
	w := &witness{base: dir}
	c := callsConfig(t, dir, created("new"), created("f"), created("plain/new"), created("a/new"), created("a/c/new"),
		call(unix.SYS_RENAMEAT2, cwd, "a/c/new", cwd, "a/c/newer", 0), created("mnt/new"), call(unix.SYS_RENAMEAT2, cwd, "new", cwd, "a/c/n", 0))
	c.Overlays, c.Writable, c.Watch = []mount.Overlay{overlay(t, dir)}, nil, w
	run(t, c, nil).want(t, ok(7)+"EXDEV\n")
	w.want(t, "open new", "open f", "open plain/new", "open a/new", "open a/c/new", "rename a/c/new a/c/newer", "open mnt/new", "rename new a/c/n")
}

// TestWatchStarved: a call fails where the recorder has no descriptor left to find out what it changes.
func TestWatchStarved(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "starved")
	cmd := exec.Command(c.Path)
	cmd.Env = c.Env
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "EIO\nok\ntold of []\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// helperStarved is a recorder that may open no more files once its jail is there.
func helperStarved([]string) int {
	return recordCalls(func() error { return nil }, func(*Jail) error {
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3})
	}, created("new"), call(unix.SYS_OPENAT, cwd, "/dev/null", unix.O_WRONLY, 0))
}

// TestWatchBlind: where a program's memory cannot be read there is no jail, and it says why.
func TestWatchBlind(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "blind")
	cmd := exec.Command(c.Path)
	cmd.Env = c.Env
	out, err := cmd.CombinedOutput()
	if s := string(out); err == nil || !strings.HasPrefix(s, "jail unavailable: ") || !strings.Contains(s, connect.Step+": operation not permitted (") ||
		!strings.Contains(s, "process_vm_readv") && !strings.Contains(s, "ptrace_scope") {
		t.Errorf("%v %s", err, s)
	}
}

// helperBlind starts a jail after it took from itself the call that reads another's memory.
func helperBlind([]string) int {
	return recordCalls(func() error { return forbid(unix.SYS_PROCESS_VM_READV) }, func(j *Jail) error {
		_, err := fmt.Println(j.NotCovered())
		return err
	}, created("new"))
}

// recordCalls runs calls in a jail, and functions before it is made and once it is there, and prints what was told of.
func recordCalls(before func() error, then func(*Jail) error, calls ...string) int {
	fail := func(err error) int { fmt.Println(err); return 1 }
	dir, err := os.MkdirTemp("", "jail-test-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	if err := before(); err != nil {
		return fail(err)
	}
	exe, _ := os.Executable()
	w := new(witness)
	j, err := Start(context.Background(), &Config{Path: exe, Argv: append([]string{"helper"}, calls...), Dir: dir, TTY: -1, Writable: []string{dir},
		Env: []string{helperVar + "=calls"}, Stdout: os.Stdout, Stderr: os.Stderr, Watch: w})
	if err != nil {
		return fail(err)
	}
	defer j.Close()
	if err := errors.Join(then(j), j.Release()); err != nil {
		return fail(err)
	}
	j.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Println("told of", w.calls)
	return 0
}

// forbid makes a call of every thread of this process, and of its children, fail with EPERM.
func forbid(nr uint32) error {
	raw, err := bpf.Assemble(filter.Assemble(filter.Each(filter.Errno(unix.EPERM), nr), filter.Allow))
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := filter.Raw(raw)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}
