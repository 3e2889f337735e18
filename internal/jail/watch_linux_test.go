package jail

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/sys/unix"
)

// A witness is a Watcher that keeps what it is told of, each as "op path path", and holds every path against the
// directory that came with it.
type witness struct {
	base string // taken off the paths
	hook func(*FileCall) (func() error, error)

	mu    sync.Mutex
	calls []string
	wrong []string
}

var fileOpNames = [...]string{"", "open", "truncate", "rename", "exchange", "link", "unlink", "rmdir", "mkdir", "symlink",
	"mknod", "mode", "owner", "times", "attributes", "bind"}

func (w *witness) Changing(c *FileCall) (func() error, error) {
	w.mu.Lock()
	text := fileOpNames[c.Op]
	for _, p := range c.Paths {
		if p.Dir < 0 {
			text += " -"
			continue
		}
		text += " " + strings.TrimPrefix(p.Path, w.base+"/")
		if len(p.Path) > inspect.MaxPath {
			continue // the link cannot be read
		}
		if dir, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", p.Dir)); err != nil || filepath.Join(dir, p.Name) != p.Path {
			w.wrong = append(w.wrong, fmt.Sprintf("%s: its directory is %q %v, its name %q", p.Path, dir, err, p.Name))
		}
	}
	w.calls = append(w.calls, text)
	w.mu.Unlock()
	if w.hook != nil {
		return w.hook(c)
	}
	return nil, nil
}

func (w *witness) want(t testing.TB, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.wrong {
		t.Error(s)
	}
	if !slices.Equal(w.calls, want) {
		t.Errorf("told of\n\t%s\nwant\n\t%s", strings.Join(w.calls, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// watchCalls runs calls in dir and returns what was told of them and printed by them.
func watchCalls(t *testing.T, dir string, calls ...string) (*witness, result) {
	t.Helper()
	c := callsConfig(t, dir, calls...)
	w := &witness{base: dir}
	c.Watch = w
	r := run(t, c, func(j *Jail) {
		if n := j.NotCovered(); len(n) > 0 {
			t.Logf("not covered: %q", n)
		}
	})
	return w, r
}

const cwd = unix.AT_FDCWD

// ok is what n calls print that succeed.
func ok(n int) string { return strings.Repeat("ok\n", n) }

// A watchTest is one row of the tables below: its calls run in a directory with the files of watchDir.
type watchTest struct {
	name  string
	calls []string
	says  string // what the calls print; all "ok" if empty
	want  []string
}

// watchDir has file, sub/inner, sub/deep/, and the links tosub, tofile, dangling (to sub/none) and loop.
func watchDir(t *testing.T) string {
	dir := testDir(t)
	mustWrite(t, filepath.Join(dir, "file"), "content")
	mustWrite(t, filepath.Join(dir, "sub/inner"), "content")
	err := os.Mkdir(filepath.Join(dir, "sub/deep"), 0o755)
	for name, to := range map[string]string{"tosub": "sub", "tofile": dir + "/file", "dangling": "sub/none", "loop": "loop"} {
		err = errors.Join(err, os.Symlink(to, filepath.Join(dir, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func runWatchTests(t *testing.T, tests []watchTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, r := watchCalls(t, watchDir(t), tt.calls...)
			r.want(t, cmp.Or(tt.says, ok(len(tt.calls))))
			w.want(t, tt.want...)
		})
	}
}

func TestWatchCalls(t *testing.T) {
	t.Parallel()
	runWatchTests(t, []watchTest{
		{"openat", []string{call(unix.SYS_OPENAT, cwd, "new", unix.O_CREAT|unix.O_WRONLY, 0o644),
			call(unix.SYS_OPENAT, cwd, "file", unix.O_RDWR, 0), call(unix.SYS_OPENAT, cwd, "file", unix.O_TRUNC, 0)},
			"", []string{"open new", "open file", "open file"}},
		{"openat for reading", []string{call(unix.SYS_OPENAT, cwd, "file", unix.O_RDONLY, 0),
			call(unix.SYS_OPENAT, cwd, ".", unix.O_DIRECTORY, 0), call(unix.SYS_OPENAT, cwd, "file", unix.O_PATH|unix.O_RDWR, 0)},
			"", nil},
		{"openat2", []string{call(unix.SYS_OPENAT2, cwd, "new", how{unix.O_CREAT | unix.O_WRONLY, 0}, 24),
			call(unix.SYS_OPENAT2, cwd, "file", how{unix.O_RDONLY, 0}, 24)}, "", []string{"open new"}},
		{"truncate", []string{call(unix.SYS_TRUNCATE, "tofile", 3)}, "", []string{"truncate file"}},
		{"renameat2", []string{call(unix.SYS_RENAMEAT2, cwd, "file", cwd, "sub/new", 0),
			call(unix.SYS_RENAMEAT2, cwd, "sub/new", cwd, "file", unix.RENAME_NOREPLACE)},
			"", []string{"rename file sub/new", "rename sub/new file"}},
		{"rename of a directory", []string{call(unix.SYS_RENAMEAT2, cwd, "sub", cwd, "other/", 0)}, "", []string{"rename sub other"}},
		{"exchange", []string{call(unix.SYS_RENAMEAT2, cwd, "file", cwd, "sub", unix.RENAME_EXCHANGE)}, "", []string{"exchange file sub"}},
		{"unlinkat", []string{call(unix.SYS_UNLINKAT, cwd, "tofile", 0), call(unix.SYS_UNLINKAT, cwd, "sub/deep", unix.AT_REMOVEDIR)},
			"", []string{"unlink tofile", "rmdir sub/deep"}},
		{"linkat", []string{call(unix.SYS_LINKAT, cwd, "tofile", cwd, "a", 0), call(unix.SYS_LINKAT, cwd, "tofile", cwd, "b", unix.AT_SYMLINK_FOLLOW)},
			"", []string{"link tofile a", "link file b"}},
		{"symlinkat", []string{call(unix.SYS_SYMLINKAT, "anywhere", cwd, "sub/s")}, "", []string{"symlink sub/s"}},
		{"mkdirat", []string{call(unix.SYS_MKDIRAT, cwd, "d/", 0o755)}, "", []string{"mkdir d"}},
		{"mknodat", []string{call(unix.SYS_MKNODAT, cwd, "pipe", unix.S_IFIFO|0o644, 0)}, "", []string{"mknod pipe"}},
		{"fchmodat", []string{call(unix.SYS_FCHMODAT, cwd, "tofile", 0o600)}, "", []string{"mode file"}},
		{"fchmodat2", []string{call(unix.SYS_FCHMODAT2, cwd, "file", 0o600, unix.AT_SYMLINK_NOFOLLOW)}, "", []string{"mode file"}},
		{"fchmod", []string{callAs("f", unix.SYS_OPENAT, cwd, "tofile", unix.O_RDONLY, 0), call(unix.SYS_FCHMOD, fdOf("f"), 0o600)},
			"", []string{"mode file"}},
		{"fchmodat2 of a descriptor", []string{callAs("f", unix.SYS_OPENAT, cwd, "file", unix.O_PATH, 0),
			call(unix.SYS_FCHMODAT2, fdOf("f"), "", 0o600, unix.AT_EMPTY_PATH)}, "", []string{"mode file"}},
		{"fchownat", []string{call(unix.SYS_FCHOWNAT, cwd, "tofile", -1, -1, 0), call(unix.SYS_FCHOWNAT, cwd, "tofile", -1, -1, unix.AT_SYMLINK_NOFOLLOW),
			call(unix.SYS_FCHOWNAT, cwd, "tosub/", -1, -1, unix.AT_SYMLINK_NOFOLLOW)}, "", []string{"owner file", "owner tofile", "owner sub"}},
		{"utimensat", []string{call(unix.SYS_UTIMENSAT, cwd, "file", 0, 0), callAs("f", unix.SYS_OPENAT, cwd, "file", unix.O_RDONLY, 0),
			call(unix.SYS_UTIMENSAT, fdOf("f"), 0, 0, 0)}, "", []string{"times file"}},
		{"bind", []string{callAs("u", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0), call(unix.SYS_BIND, fdOf("u"), sockAt("sub/sock"), unix.SizeofSockaddrUnix),
			callAs("v", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0), call(unix.SYS_BIND, fdOf("v"), sockAt("@abstract"), 11)},
			"", []string{"bind sub/sock"}},
	})
}

// TestWatchPaths: however a program spells a path, it is told by its own name.
func TestWatchPaths(t *testing.T) {
	t.Parallel()
	const create = unix.O_CREAT | unix.O_WRONLY
	create1 := func(path string) string { return call(unix.SYS_OPENAT, cwd, path, create, 0o644) }
	open := func(name, path string, flags int) string {
		return callAs(name, unix.SYS_OPENAT, cwd, path, flags, 0o644)
	}
	runWatchTests(t, []watchTest{
		{"dots", []string{create1("sub/../sub/./deep//../new"), create1("./x"), create1("sub/deep/../../y")}, "", []string{"open sub/new", "open x", "open y"}},
		{"dots over a link", []string{create1("tosub/../z"), create1("tosub/deep/../z")}, "", []string{"open z", "open sub/z"}},
		{"links of directories", []string{create1("tosub/new"), create1("tosub/deep/new")}, "", []string{"open sub/new", "open sub/deep/new"}},
		{"dangling link", []string{create1("dangling")}, "", []string{"open sub/none"}},
		{"dangling link, exclusively", []string{call(unix.SYS_OPENAT, cwd, "dangling", create|unix.O_EXCL, 0o644)}, "EEXIST\n", []string{"open dangling"}},
		{"link, not followed", []string{call(unix.SYS_OPENAT, cwd, "tofile", unix.O_WRONLY|unix.O_NOFOLLOW, 0)}, "ELOOP\n", []string{"open tofile"}},
		{"loop", []string{create1("loop"), create1("loop/x")}, "ELOOP\nELOOP\n", nil},
		{"nothing there", []string{create1("none/x"), create1("file/x"), create1("")}, "ENOENT\nENOTDIR\nENOENT\n", nil},
		{"elsewhere", []string{create1("/dev/null"), create1("/dev/shm/x"), create1("/proc/self/oom_score_adj"), create1("/etc/new")},
			"ok\nok\nok\nEROFS\n", nil},
		{"dirfd", []string{open("d", "sub", unix.O_RDONLY), open("p", "tosub", unix.O_PATH), call(unix.SYS_OPENAT, fdOf("d"), "a", create, 0o644),
			call(unix.SYS_OPENAT, fdOf("p"), "../b", create, 0o644), call(unix.SYS_OPENAT, 99, "c", create, 0o644)},
			"ok\nok\nok\nok\nEBADF\n", []string{"open sub/a", "open b"}},
		{"dirfd, not to be dumped", []string{call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0), open("d", "tosub", unix.O_RDONLY),
			call(unix.SYS_OPENAT, fdOf("d"), "a", create, 0o644), create1("x")}, "", []string{"open sub/a", "open x"}},
		{"chdir", []string{call(unix.SYS_CHDIR, "sub"), create1("a"), create1("../b")}, "", []string{"open sub/a", "open b"}},
		{"the directory itself", []string{call(unix.SYS_CHDIR, "sub"), call(unix.SYS_FCHMODAT, cwd, ".", 0o700), call(unix.SYS_FCHMODAT, cwd, "deep/..", 0o755)},
			"", []string{"mode sub", "mode sub"}},
		{"proc", []string{open("f", "file", unix.O_PATH), create1("/proc/self/fd/{f}"), create1("/proc/thread-self/fd/{f}"), create1("/dev/fd/{f}"),
			create1("/proc/self/cwd/x"), create1("/proc/self/../self/cwd/tosub/x"), create1("/proc/../proc/self/task/../cwd/y")},
			"", []string{"open file", "open file", "open file", "open x", "open sub/x", "open y"}},
		{"proc by number", []string{callAs("p", unix.SYS_GETPID), open("f", "file", unix.O_PATH), create1("/proc/{p}/fd/{f}"), create1("/proc/{p}/cwd/x"), create1("/proc/{p}/root/dev/null")},
			"", []string{"open file", "open x"}},
		{"deleted", []string{open("f", "file", unix.O_RDONLY), call(unix.SYS_UNLINKAT, cwd, "file", 0), create1("/proc/self/fd/{f}")},
			"", []string{"unlink file"}},
		{"named as if deleted", []string{open("f", "a (deleted)", create), create1("/proc/self/fd/{f}")},
			"", []string{"open a (deleted)", "open a (deleted)"}},
		{"not UTF-8", []string{create1("\xff\n\x80 \\040")}, "", []string{"open \xff\n\x80 \\040"}},
		{"no path", []string{call(unix.SYS_MKDIRAT, cwd, 8, 0o755), call(unix.SYS_OPENAT2, cwd, "x", 8, 24), call(unix.SYS_MKDIRAT, cwd, "x"+strings.Repeat("/x", inspect.MaxPath), 0o755)},
			"EFAULT\nEFAULT\nENAMETOOLONG\n", nil},
		{"in root", []string{open("d", "sub", unix.O_PATH), call(unix.SYS_OPENAT2, fdOf("d"), "/../../new", how{create, unix.RESOLVE_IN_ROOT}, 24),
			call(unix.SYS_OPENAT2, fdOf("d"), "deep/new", how{create, unix.RESOLVE_BENEATH}, 24)}, "", []string{"open sub/new", "open sub/deep/new"}},
	})
}

// TestWatchUnnamed: a file of O_TMPFILE is told of when it gets its name.
func TestWatchUnnamed(t *testing.T) {
	t.Parallel()
	tmpfile := callAs("f", unix.SYS_OPENAT, cwd, "sub", unix.O_TMPFILE|unix.O_RDWR, 0o644)
	runWatchTests(t, []watchTest{
		{"by its descriptor's name", []string{tmpfile, call(unix.SYS_LINKAT, cwd, "/proc/self/fd/{f}", cwd, "new", unix.AT_SYMLINK_FOLLOW)}, "", []string{"link - new"}},
		{"by its descriptor", []string{tmpfile, call(unix.SYS_LINKAT, fdOf("f"), "", cwd, "new", unix.AT_EMPTY_PATH)}, "", []string{"link - new"}},
	})
}

// TestWatchLongPath: a path of 4,095 bytes, the longest there is, and one that is longer than that when it is whole.
func TestWatchLongPath(t *testing.T) {
	t.Parallel()
	dir := watchDir(t)
	const name = "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	deep := dir + "/deep"
	for len(deep)+2*len(name) < inspect.MaxPath {
		deep += name
	}
	longest := deep + "/" + strings.Repeat("b", inspect.MaxPath-2-len(deep))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	w, r := watchCalls(t, dir, call(unix.SYS_MKDIRAT, cwd, longest, 0o755), call(unix.SYS_CHDIR, longest),
		call(unix.SYS_MKDIRAT, cwd, name[1:], 0o755), call(unix.SYS_OPENAT, cwd, name[1:]+"/c", unix.O_CREAT|unix.O_WRONLY, 0o644))
	r.want(t, ok(4))
	longest = longest[len(dir)+1:]
	w.want(t, "mkdir "+longest, "mkdir "+longest+name, "open "+longest+name+"/c")
}

// TestOlderFIFO: a FIFO that stood before the start is not opened for writing, whatever it is called, but in an overlay; one of
// the program's own is. An open that would make the file fails as it does outside.
func TestOlderFIFO(t *testing.T) {
	t.Parallel()
	for _, layered := range []bool{false, true} {
		dir := watchDir(t)
		if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		const flags = unix.O_RDWR | unix.O_NONBLOCK
		open := func(path string) string { return call(unix.SYS_OPENAT, cwd, path, flags, 0) }
		c := callsConfig(t, dir, call(unix.SYS_OPENAT, cwd, "fifo", flags|unix.O_CREAT|unix.O_EXCL, 0o600), open("fifo"), call(unix.SYS_LINKAT, cwd, "fifo", cwd, "hard", 0), open("hard"),
			call(unix.SYS_RENAMEAT2, cwd, "fifo", cwd, "moved", 0), open("sub/../moved"),
			call(unix.SYS_MKNODAT, cwd, "own", unix.S_IFIFO|0o600, 0), open("own"),
			callAs("path", unix.SYS_OPENAT, cwd, "moved", unix.O_PATH, 0), callAs("read", unix.SYS_OPENAT, cwd, "moved", unix.O_RDONLY|unix.O_NONBLOCK, 0),
			callAs("mine", unix.SYS_OPENAT, cwd, "own", unix.O_PATH, 0), call(unix.SYS_UNLINKAT, cwd, "moved", 0), call(unix.SYS_UNLINKAT, cwd, "hard", 0),
			call(unix.SYS_UNLINKAT, cwd, "own", 0), open("/proc/self/fd/{path}"), open("/proc/self/fd/{read}"), open("/proc/self/fd/{mine}"))
		c.Watch = &witness{base: dir}
		want := "EACCES\nok\nEACCES\nok\nEACCES\nok\nok\n" + ok(6) + "EACCES\nEACCES\nok\n"
		if layered {
			c.Overlays, c.Writable, want = []mount.Overlay{overlay(t, dir)}, nil, ok(16)
		}
		run(t, c, nil).want(t, "EEXIST\n"+want)
	}
}
