package overlay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

// randomTree is what a random program works on; its names are few, so that it meets what it did.
var randomTree = map[string]string{
	"a": "a", "b": "bb", "d/a": "da", "d/d/b": "ddb", "e/": "", "l": "-> d/a", "m": "-> d", "d/up": "-> ../b", "away": "-> /etc/passwd", "n": "-> none",
}

var randomNames = []string{
	"a", "b", "d", "d/a", "d/d", "d/d/b", "d/d/c", "e", "e/x", "l", "m", "m/a", "m/d/b", "m/d", "d/up", "away", "n", "x", "x/y", "x/y/z", "a/x", "none/x", ".",
}

// A worker is a tree of files, of this package or of the system.
type worker interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, b []byte, perm fs.FileMode) error
	List(name string) ([]string, error)
	Exists(name string) (bool, error)
	Kind(name string) (string, error)
	Remove(name string) error
	Mkdir(name string, perm fs.FileMode) error
	MkdirAll(name string, perm fs.FileMode) error
	Rename(from, to string) error
	Symlink(target, name string) error
	ReadLink(name string) (string, error)
	Append(name, text string) error
	Hold(name string, flag int) (held, error)
}

// A held is an open file.
type held interface {
	io.ReadWriteSeeker
	io.Closer
	io.WriterAt
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
}

func (o overlaid) Hold(name string, flag int) (held, error) { return o.OpenFile(name, flag, 0o644) }

func (s system) Hold(name string, flag int) (held, error) { return s.OpenFile(name, flag, 0o644) }

// holdFlags are how a random program opens what it holds.
var holdFlags = []int{os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREATE | os.O_EXCL}

// use does something with an open file.
func use(h held, what, i int) (any, error) {
	if info, err := h.Stat(); err != nil || info.IsDir() { // on which systems differ
		return "a directory", err
	}
	switch what {
	case 0:
		b := make([]byte, 3)
		n, err := h.Read(b)
		return fmt.Sprintf("%d %q %t", n, b[:n], errors.Is(err, io.EOF)), nil
	case 1:
		return h.Write(fmt.Append(nil, i))
	case 2:
		return nil, h.Truncate(int64(i % 7))
	case 3:
		return h.Seek(int64(i%4), i%3)
	case 4:
		return h.WriteAt([]byte("@"), int64(i%5))
	}
	info, err := h.Stat()
	if err != nil || info.IsDir() {
		return nil, err
	}
	return info.Size(), nil
}

// overlaid is a tree of this package.
type overlaid struct{ *overlay.FS }

func (o overlaid) Kind(name string) (string, error) {
	i, err := o.Lstat(name)
	if err != nil {
		return "", err
	}
	return i.Mode().String(), nil
}

func (o overlaid) Append(name, text string) error {
	h, err := o.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = h.Write([]byte(text))
	return errors.Join(err, h.Close())
}

// system is a directory of the host.
type system struct{ *os.Root }

func (s system) WriteFile(name string, b []byte, perm fs.FileMode) error {
	err := s.Root.WriteFile(name, b, perm)
	if errors.Is(err, fs.ErrNotExist) && path.Dir(name) != "." && s.MkdirAll(path.Dir(name), 0o755) == nil {
		return s.Root.WriteFile(name, b, perm)
	}
	return err
}

func (s system) List(name string) ([]string, error) {
	all, err := fs.ReadDir(s.FS(), name)
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}

func (s system) Exists(name string) (bool, error) {
	_, err := s.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

func (s system) Kind(name string) (string, error) {
	i, err := s.Lstat(name)
	if err != nil {
		return "", err
	}
	return i.Mode().String(), nil
}

// Rename is that of the system: Go's own refuses an empty directory in the place of another.
func (s system) Rename(from, to string) error {
	if from == "." || to == "." {
		return syscall.EINVAL
	}
	return syscall.Rename(filepath.Join(s.Name(), from), filepath.Join(s.Name(), to))
}

// MkdirAll is that of package os: Root's makes what a link leads to.
func (s system) MkdirAll(name string, perm fs.FileMode) error {
	return os.MkdirAll(filepath.Join(s.Name(), name), perm)
}

func (s system) ReadLink(name string) (string, error) { return s.Readlink(name) }

func (s system) Append(name, text string) error {
	f, err := s.OpenFile(name, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// How many ways there are to work on a tree: all, and those that hold no file open, which are a system's to the letter.
const allWays, wholeWays = 17, 13

// randomly does n things that seed says, in so many ways, and tells what came of each.
func randomly(w worker, seed uint64, n, ways int) (told []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	name := func() string { return randomNames[r.IntN(len(randomNames))] }
	var open []held
	defer func() {
		for _, h := range open {
			h.Close()
		}
	}()
	for i := range n {
		at, to := name(), name()
		var got any
		var err error
		what := r.IntN(ways)
		switch what {
		case 0, 1:
			got, err = w.ReadFile(at)
			got = fmt.Sprintf("%s", got)
		case 2, 3:
			err = w.WriteFile(at, fmt.Appendf(nil, "%d", i), 0o644)
		case 4:
			got, err = w.List(at)
		case 5:
			got, err = w.Exists(at)
		case 6:
			got, err = w.Kind(at)
		case 7:
			err = w.Remove(at)
		case 8:
			err = w.Mkdir(at, 0o755)
		case 9:
			err = w.MkdirAll(at, 0o755)
		case 10:
			err = w.Rename(at, to)
		case 11:
			if r.IntN(3) == 0 {
				err = w.Symlink(to, at)
			} else {
				got, err = w.ReadLink(at)
			}
		case 13:
			var h held
			if h, err = w.Hold(at, holdFlags[r.IntN(len(holdFlags))]); err == nil {
				open = append(open, h)
			}
		case 14, 15:
			if len(open) > 0 {
				got, err = use(open[r.IntN(len(open))], r.IntN(6), i)
			}
		case 16:
			if len(open) > 0 {
				err = open[0].Close()
				open = open[1:]
			}
		case 12:
			err = w.Append(at, fmt.Sprint("+", i))
		}
		if err != nil {
			got = "fails"
		}
		told = append(told, fmt.Sprintf("%d %s %s: %v", what, at, to, got))
	}
	return told
}

// sized is short, or long where TAPEDECK_LONG is set.
func sized(short, long int) int {
	if os.Getenv("TAPEDECK_LONG") != "" {
		return long
	}
	return short
}

// TestATreeIsAsTheSystemHasIt does random things in a tree and in a copy of its directory: the same comes of them.
func TestATreeIsAsTheSystemHasIt(t *testing.T) {
	skipWindows(t)
	for seed := range uint64(sized(30, 100)) {
		dir := hostDir(t, randomTree)
		f := newFS(t, &overlay.Options{Dir: dir})
		root, err := os.OpenRoot(hostDir(t, randomTree))
		must(t, err)
		a, b := randomly(overlaid{f}, seed, 60, wholeWays), randomly(system{root}, seed, 60, wholeWays)
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("seed %d: step %d: %s, and the system has %s, after\n%s", seed, i, a[i], b[i], strings.Join(a[:i], "\n"))
			}
		}
		copied := filepath.Join(t.TempDir(), "copy")
		must(t, f.Copy(copied))
		if a, b := state(t, copied), state(t, root.Name()); a != b {
			t.Fatalf("seed %d: the tree is\n%s\nthe system has\n%s", seed, a, b)
		}
		must(t, f.WriteBack())
		if a, b := state(t, dir), state(t, copied); a != b {
			t.Fatalf("seed %d: written back it is\n%s\nwant\n%s", seed, a, b)
		}
		root.Close()
	}
}

// firstOther shows the first line in which two tapes differ.
func firstOther(a, b []byte) string {
	was, now := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(was), len(now)) {
		if !bytes.Equal(was[i], now[i]) {
			return fmt.Sprintf("\n%s\n%s", was[i], now[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(was), len(now))
}

// TestATapeAnswersARandomProgram: over the tape it sees what it saw over the directory, and leaves the same tape.
func TestATapeAnswersARandomProgram(t *testing.T) {
	skipWindows(t)
	for seed := range uint64(sized(100, 400)) {
		f := newFS(t, &overlay.Options{Dir: hostDir(t, randomTree)})
		first := record(t, f)
		a := randomly(overlaid{f}, seed, 60, allWays)
		again := newFS(t, &overlay.Options{Tape: overlay.NewTaped(first.records(), first.store, nil)})
		second := record(t, again)
		b := randomly(overlaid{again}, seed, 60, allWays)
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("seed %d: step %d: %s, from the tape %s, after\n%s\nof\n%s", seed, i, a[i], b[i], strings.Join(a[:i], "\n"), strings.Join(first.lines(), "\n"))
			}
		}
		must(t, first.rec.Flush())
		must(t, second.rec.Flush())
		if !bytes.Equal(first.buf.Bytes(), second.buf.Bytes()) {
			t.Fatalf("seed %d: the tapes differ: %s\nafter\n%s", seed, firstOther(first.buf.Bytes(), second.buf.Bytes()), strings.Join(a, "\n"))
		}
		patch, err := f.Diff()
		must(t, err)
		if other, err := again.Diff(); err != nil || !bytes.Equal(patch, other) {
			t.Fatalf("seed %d: the patch is\n%s\nand from the tape\n%s, %v", seed, patch, other, err)
		}
	}
}
