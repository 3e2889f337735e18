//go:build unix

package overlay_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

// hostileDir has everything in it that may not be followed or opened, and a secret beside it. Its state is what listHost says.
func hostileDir(t *testing.T) (dir, outside string) {
	t.Helper()
	outside = t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("host"), 0o600))
	dir = hostDir(t, map[string]string{
		"file": "inside", "dir/inner": "inner", "full/x": "x",
		"out": "-> " + outside + "/secret", "outdir": "-> " + outside, "up": "-> ../" + filepath.Base(outside) + "/secret",
		"deep/up": "-> ../../x", "abs": "-> /etc/passwd", "one": "-> two", "two": "-> three", "three": "-> abs",
		"loop": "-> loop", "ping": "-> pong", "pong": "-> ping", "null": "-> /dev/null", "dangling": "-> nothing",
	})
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	l, err := net.Listen("unix", shortSocket(t, dir))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	must(t, os.Symlink("fifo", filepath.Join(dir, "tofifo")))
	return dir, outside
}

// shortSocket is a name for a socket in dir, which the system takes: it takes short ones only.
func shortSocket(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "socket")
	if len(name) > 100 {
		t.Chdir(dir)
		return "socket"
	}
	return name
}

// listHost says what stands below dirs: names, modes, sizes, times and targets.
func listHost(t *testing.T, dirs ...string) string {
	t.Helper()
	var all []string
	for _, dir := range dirs {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			target, _ := os.Readlink(path)
			all = append(all, strings.Join([]string{path, info.Mode().String(), info.ModTime().String(), target}, " "))
			return nil
		}))
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}

// What else comes of a hostile path than that it is refused: 0 is that it works.
var (
	ofALink      = map[string]syscall.Errno{"remove": 0, "rename": 0, "mkdir": syscall.EEXIST, "symlink": syscall.EEXIST} // it is the link that goes
	ofADirectory = map[string]syscall.Errno{
		"stat": 0, "list": 0, "chmod": 0, "rename": 0, "mkdir": syscall.EEXIST, "symlink": syscall.EEXIST, "remove": syscall.ENOTEMPTY,
	}
)

// hostileNames are paths that must be refused.
var hostileNames = []struct {
	name  string
	errno syscall.Errno
	why   string // a part of what the error says
	but   map[string]syscall.Errno
}{
	{"../x", syscall.EINVAL, "leads out", nil},
	{"..", syscall.EINVAL, "leads out", nil},
	{"dir/../../x", syscall.EINVAL, "not clean", nil},
	{"/etc/passwd", syscall.EINVAL, "absolute", nil},
	{"", syscall.EINVAL, "not clean", nil},
	{"dir//inner", syscall.EINVAL, "not clean", nil},
	{"a\x00b", syscall.EINVAL, "NUL", nil},
	{"a\xffb", syscall.EINVAL, "UTF-8", nil},
	{strings.Repeat("n", 5000), syscall.ENAMETOOLONG, "4096", nil},
	{strings.Repeat("n", 256), syscall.ENAMETOOLONG, "255", nil},
	{strings.Repeat("n/", 2100) + "n", syscall.ENAMETOOLONG, "4096", nil},
	{"out", syscall.EACCES, "out of the tree", ofALink},
	{"up", syscall.EACCES, "out of the tree", ofALink},
	{"abs", syscall.EACCES, "out of the tree", ofALink},
	{"one", syscall.EACCES, "out of the tree", ofALink},
	{"null", syscall.EACCES, "out of the tree", ofALink},
	{"outdir/secret", syscall.EACCES, "out of the tree", nil},
	{"deep/up", syscall.EACCES, "out of the tree", ofALink},
	{"loop", syscall.ELOOP, "more than 40", ofALink},
	{"ping", syscall.ELOOP, "more than 40", ofALink},
	{"loop/x", syscall.ELOOP, "more than 40", nil},
	{"fifo", syscall.EACCES, "a FIFO", nil},
	{"tofifo", syscall.EACCES, "a FIFO", ofALink},
	{"socket", syscall.EACCES, "a socket", nil},
	{"file/below", syscall.ENOTDIR, "file is no directory", nil},
	{"fifo/below", syscall.EACCES, "a FIFO", nil},
	{"dir", syscall.EISDIR, "is a directory", ofADirectory},
}

// TestHostileNames asks for each in every way, with a tape and without. Nothing hangs, and the host stays as it is.
func TestHostileNames(t *testing.T) {
	dir, outside := hostileDir(t)
	before := listHost(t, dir, outside)
	for i := range hostileNames {
		tt := &hostileNames[i]
		for what, try := range hostileWays {
			for _, taped := range []bool{false, true} {
				f := newFS(t, &overlay.Options{Dir: dir})
				if taped {
					record(t, f)
				}
				err := within(t, func() error { return try(f, tt.name) })
				want, other := tt.but[what]
				if !other {
					want = tt.errno
				}
				checkRefused(t, what, tt.name, err, want, tt.why, other)
			}
		}
	}
	if after := listHost(t, dir, outside); after != before {
		t.Errorf("the host changed from\n%s\nto\n%s", before, after)
	}
}

func checkRefused(t *testing.T, what, name string, err error, want syscall.Errno, why string, other bool) {
	t.Helper()
	name = name[:min(len(name), 20)]
	var at *fs.PathError
	switch {
	case want == 0 && err == nil:
	case want == 0 || err == nil:
		t.Errorf("%s of %q: %v, want %v", what, name, err, want)
	case !errors.As(err, &at) || !errors.Is(err, want) || !other && !strings.Contains(err.Error(), why):
		t.Errorf("%s of %q: %v, want a *fs.PathError of %v that says %q", what, name, err, want, why)
	case len(err.Error()) > 400:
		t.Errorf("%s of %q: an error of %d bytes", what, name, len(err.Error()))
	}
}

// TestADeviceIsNeverOpened needs the right to make one.
func TestADeviceIsNeverOpened(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mknod(filepath.Join(dir, "zero"), syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
		t.Skip(err)
	}
	f := newFS(t, &overlay.Options{Dir: dir})
	for what, try := range hostileWays {
		checkRefused(t, what, "zero", within(t, func() error { return try(f, "zero") }), syscall.EACCES, "a device", false)
	}
	if names, err := f.List("."); err != nil || len(names) > 0 {
		t.Errorf("listed: %q, %v", names, err)
	}
}

// TestWhatTakesAFilesPlaceIsNotFollowed swaps what a tree has seen for a link that leads out, and for a FIFO.
func TestWhatTakesAFilesPlaceIsNotFollowed(t *testing.T) {
	outside := hostDir(t, map[string]string{"secret": "host", "sub/secret": "host"})
	dir := hostDir(t, map[string]string{"file": "x", "sub/secret": "mine"})
	f := newFS(t, &overlay.Options{Dir: dir})
	_, err := f.ReadFile("sub/secret") // sub is known for a directory from here on
	must(t, err)
	must(t, os.RemoveAll(filepath.Join(dir, "sub")))
	must(t, os.Symlink(filepath.Join(outside, "sub"), filepath.Join(dir, "sub")))
	if b, err := f.ReadFile("sub/secret"); err == nil {
		t.Errorf("read %q through a link that took a directory's place", b)
	}
	must(t, os.Remove(filepath.Join(dir, "file")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "file"), 0o600))
	if err := within(t, func() error { _, err := f.ReadFile("file"); return err }); err == nil {
		t.Error("a FIFO that took a file's place is read")
	}
}

// TestAHostileTreeIsCopied: what a copy and a patch of such a directory hold is what the tree shows of it.
func TestAHostileTreeIsCopied(t *testing.T) {
	dir, outside := hostileDir(t)
	before := listHost(t, dir, outside)
	f := newFS(t, &overlay.Options{Dir: dir})
	copied := filepath.Join(t.TempDir(), "copy")
	must(t, within(t, func() error { return f.Copy(copied) }))
	if b, err := os.ReadFile(filepath.Join(copied, "dir", "inner")); err != nil || string(b) != "inner" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Lstat(filepath.Join(copied, "fifo")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the FIFO is in the copy: %v", err)
	}
	if b, err := f.Diff(); err != nil || len(b) > 0 {
		t.Errorf("%s, %v", b, err)
	}
	if after := listHost(t, dir, outside); after != before {
		t.Errorf("the host changed from\n%s\nto\n%s", before, after)
	}
}

// hostileWays are what a path can be asked for.
var hostileWays = map[string]func(f *overlay.FS, name string) error{
	"read":     func(f *overlay.FS, name string) error { _, err := f.ReadFile(name); return err },
	"open":     func(f *overlay.FS, name string) error { return opened(f, name, os.O_RDONLY) },
	"create":   func(f *overlay.FS, name string) error { return opened(f, name, os.O_RDWR|os.O_CREATE) },
	"truncate": func(f *overlay.FS, name string) error { return opened(f, name, os.O_WRONLY|os.O_TRUNC) },
	"write":    func(f *overlay.FS, name string) error { return f.WriteFile(name, []byte("x"), 0o644) },
	"chmod":    func(f *overlay.FS, name string) error { return f.Chmod(name, 0o755) },
	"stat":     func(f *overlay.FS, name string) error { _, err := f.Stat(name); return err },
	"list":     func(f *overlay.FS, name string) error { _, err := f.List(name); return err },
	"symlink":  func(f *overlay.FS, name string) error { return f.Symlink("x", name) },
	"mkdir":    func(f *overlay.FS, name string) error { return f.Mkdir(name, 0o755) },
	"remove":   func(f *overlay.FS, name string) error { return f.Remove(name) },
	"rename":   func(f *overlay.FS, name string) error { return f.Rename(name, "elsewhere") },
}

func opened(f *overlay.FS, name string, flag int) error {
	h, err := f.OpenFile(name, flag, 0o644)
	if err != nil {
		return err
	}
	defer h.Close()
	if flag == os.O_RDONLY {
		_, err = h.Read(make([]byte, 1))
	} else {
		_, err = h.Write([]byte("x"))
	}
	return err
}

// within fails the test where fn hangs, as an open of a FIFO does.
func within(t *testing.T, fn func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs")
		return nil
	}
}
