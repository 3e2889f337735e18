package overlay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

// TestClean is of what people write.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "./a": "a", "a//b/": "a/b", "": ".", "a/../b": "b", "a/..": ".", "..": "", "../a": "", "/a": "", "a/../../b": "",
		"a\x00": "", "\xff": "", strings.Repeat("n", 300): "",
	} {
		got, err := overlay.Clean(in)
		if want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%.30q: %q, %v, want %q", in, got, err, want)
		}
	}
}

// TestTheDirectoryIsNotWritten, whatever the program does.
func TestTheDirectoryIsNotWritten(t *testing.T) {
	dir := agentsDir(t)
	before := state(t, dir)
	f := newFS(t, &overlay.Options{Dir: dir})
	agent(f)
	if after := state(t, dir); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// TestWhatIsSeenIsTheSameEverywhere: neither the host's permissions nor its times show.
func TestWhatIsSeenIsTheSameEverywhere(t *testing.T) {
	dir := hostDir(t, map[string]string{"plain": "x", "run": "x", "dir/": ""})
	must(t, os.Chmod(filepath.Join(dir, "plain"), 0o600))
	must(t, os.Chmod(filepath.Join(dir, "run"), 0o711))
	must(t, os.Chmod(filepath.Join(dir, "dir"), 0o700))
	when := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	f := newFS(t, &overlay.Options{Dir: dir, Now: func() time.Time { return when }})
	for name, want := range map[string]fs.FileMode{"plain": 0o644, "run": 0o755, "dir": fs.ModeDir | 0o755} {
		if name == "run" && os.PathSeparator != '/' {
			continue
		}
		if i, err := f.Stat(name); err != nil || i.Mode() != want || !i.ModTime().Equal(when) {
			t.Errorf("%s: %v, %v", name, i, err)
		}
	}
	when = when.Add(time.Hour)
	must(t, f.WriteFile("plain", []byte("y"), 0o600))
	if i, err := f.Stat("plain"); err != nil || i.Mode() != 0o644 || !i.ModTime().Equal(when) {
		t.Errorf("written: %v, %v", i, err)
	}
}

// TestLimits: what is over one is refused, and what was there stays.
func TestLimits(t *testing.T) {
	dir := hostDir(t, map[string]string{"long": strings.Repeat("x", 2001), "fits": strings.Repeat("x", 2000)})
	f := newFS(t, &overlay.Options{Dir: dir, MaxBytes: 10_000, MaxFile: 2000})
	refused := func(what string, err error, want syscall.Errno, says string) {
		t.Helper()
		if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := f.ReadFile("long")
	refused("a long file", err, syscall.EFBIG, "Options.MaxFile")
	_, err = f.ReadFile("fits")
	must(t, err)
	refused("over a long file", f.WriteFile("long", nil, 0), syscall.EFBIG, "Options.MaxFile")
	refused("a long write", f.WriteFile("new", make([]byte, 2001), 0), syscall.EFBIG, "Options.MaxFile")
	h, err := f.Create("open")
	must(t, err)
	_, err = h.WriteAt([]byte("x"), 2000)
	refused("a write behind the limit", err, syscall.EFBIG, "Options.MaxFile")
	_, err = h.WriteAt([]byte("x"), 1<<62)
	refused("a write far behind", err, syscall.EFBIG, "Options.MaxFile")
	refused("a long truncate", h.Truncate(1<<62), syscall.EFBIG, "Options.MaxFile")
	must(t, h.Close())
	for i := range 3 {
		must(t, f.WriteFile(fmt.Sprint(i), make([]byte, 2000), 0))
	}
	refused("a full tree", f.WriteFile("more", make([]byte, 2000), 0), syscall.ENOSPC, "Options.MaxBytes")
	if _, err := f.Stat("more"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what did not fit is there: %v", err)
	}
	for i := range 3 { // removing gives back
		must(t, f.Remove(fmt.Sprint(i)))
	}
	for i := range 3 {
		must(t, f.WriteFile(fmt.Sprint(i), make([]byte, 2000), 0))
		must(t, f.WriteFile(fmt.Sprint(i), make([]byte, 2000), 0)) // and so does writing again
	}
	var many error
	for i := 0; many == nil; i++ {
		if i > 100 {
			t.Fatal("names cost nothing")
		}
		many = f.Mkdir(fmt.Sprint("d", i), 0)
	}
	refused("many directories", many, syscall.ENOSPC, "Options.MaxBytes")
}

// TestUsedComesBack: whatever is made and removed again counts nothing in the end.
func TestUsedComesBack(t *testing.T) {
	f := newFS(t, &overlay.Options{MaxBytes: 20_000})
	for range 100 {
		must(t, f.WriteFile("a/b/c", make([]byte, 3000), 0))
		must(t, f.Rename("a", "x"))
		must(t, f.WriteFile("y", make([]byte, 1000), 0))
		must(t, f.Rename("y", "x/b/c"))
		h, err := f.OpenFile("x/b/c", os.O_RDWR, 0)
		must(t, err)
		_, err = h.WriteAt(make([]byte, 500), 1000)
		must(t, err)
		must(t, f.Remove("x/b/c"))
		must(t, h.Truncate(3000))
		must(t, h.Close())
		must(t, f.Symlink("nowhere", "x/b/l"))
		must(t, f.Unlink("x/b/l"))
		must(t, f.Rmdir("x/b"))
		must(t, f.Rmdir("x"))
	}
}

// TestAFileIsOneWrite: whatever is written through it stands on the tape as one file_write, once it is closed or somebody else sees it.
func TestAFileIsOneWrite(t *testing.T) {
	f := newFS(t, &overlay.Options{Dir: hostDir(t, map[string]string{"a": "0123456789"})})
	r := record(t, f)
	h, err := f.OpenFile("a", os.O_RDWR, 0)
	must(t, err)
	b := make([]byte, 4)
	_, err = io.ReadFull(h, b)
	must(t, err)
	_, err = h.Write([]byte("xy"))
	must(t, err)
	_, err = h.Seek(-1, io.SeekEnd)
	must(t, err)
	_, err = h.Write([]byte("end"))
	must(t, err)
	if all, err := f.ReadFile("a"); err != nil || string(all) != "0123xy678end" {
		t.Errorf("%q, %v", all, err)
	}
	must(t, f.Rename("a", "b"))
	_, err = h.WriteAt([]byte("!"), 0)
	must(t, err)
	must(t, h.Close())
	want := []string{
		"read a 0123456789", "stat a file", "write a 0123xy678end 100644 before 0123456789", "read a 0123xy678end",
		"delete a before 0123xy678end", "write b 0123xy678end 100644 before -", "write b !123xy678end 100644 before 0123xy678end",
	}
	if got := r.lines(); !slices.Equal(got, want) {
		t.Errorf("the tape is\n%s", strings.Join(got, "\n"))
	}
	for what, err := range map[string]error{"close": h.Close(), "truncate": h.Truncate(0), "read": second(h.Read(b)), "write": second(h.Write(b))} {
		if !errors.Is(err, syscall.EBADF) {
			t.Errorf("%s of a closed file: %v", what, err)
		}
	}
}

func second(_ int, err error) error { return err }

// TestAFileThatIsOnlyOpened is looked at, and one that is gone by its end is none.
func TestAFileThatIsOnlyOpened(t *testing.T) {
	f := newFS(t, &overlay.Options{Dir: hostDir(t, map[string]string{"a": "a"})})
	r := record(t, f)
	h, err := f.Open("a")
	must(t, err)
	must(t, h.Close())
	w, err := f.Create("gone")
	must(t, err)
	_, err = w.Write([]byte("x"))
	must(t, err)
	must(t, f.Remove("gone"))
	_, err = w.Write([]byte("y"))
	must(t, err)
	must(t, w.Close())
	if got := r.lines(); !slices.Equal(got, []string{"stat a file", "stat gone none", "write gone x 100644 before -", "delete gone before x"}) {
		t.Errorf("the tape is\n%s", strings.Join(got, "\n"))
	}
	if _, err := h.(*overlay.File).Write([]byte("x")); !errors.Is(err, syscall.EBADF) {
		t.Errorf("written through a file for reading: %v", err)
	}
}

// TestOpenFlags are those of package os.
func TestOpenFlags(t *testing.T) {
	f := newFS(t, &overlay.Options{Dir: hostDir(t, map[string]string{"a": "abc"})})
	for _, tt := range []struct {
		flag int
		want syscall.Errno
	}{
		{os.O_CREATE | os.O_EXCL | os.O_RDWR, syscall.EEXIST}, {os.O_RDWR | os.O_CREATE, 0}, {os.O_RDONLY | os.O_CREATE, 0},
	} {
		h, err := f.OpenFile("a", tt.flag, 0)
		if tt.want != 0 && !errors.Is(err, tt.want) || tt.want == 0 && err != nil {
			t.Errorf("%x: %v", tt.flag, err)
		}
		if err == nil {
			must(t, h.Close())
		}
	}
	if _, err := f.OpenFile("no/such", os.O_RDWR|os.O_CREATE, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made without its directory: %v", err)
	}
	h, err := f.OpenFile("a", os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = h.Write([]byte("d"))
	must(t, err)
	must(t, f.WriteFile("a", []byte("longer"), 0))
	_, err = h.Write([]byte("e"))
	must(t, err)
	if b, err := f.ReadFile("a"); err != nil || string(b) != "longere" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := h.Read(make([]byte, 1)); !errors.Is(err, syscall.EBADF) {
		t.Errorf("read of a file for writing: %v", err)
	}
}

// TestApply makes true what a process did, in the place of whatever stands there, and its records name it.
func TestApply(t *testing.T) {
	f := newFS(t, &overlay.Options{Dir: hostDir(t, map[string]string{"dir/a": "a", "dir/b/c": "c", "file": "x", "gone": "x", "link": "-> gone"})})
	r := record(t, f)
	must(t, f.Apply(7, []overlay.Change{
		{Path: "file/inner", Content: []byte("i"), Perm: 0o755},
		{Path: "dir", Content: []byte("a file"), Perm: 0o644},
		{Path: "link", Content: []byte("no link"), Perm: 0o644},
		{Path: "never", Deleted: true},
		{Path: "gone", Deleted: true},
		{Path: "file", Deleted: true},
		{Path: "new", Target: "dir"},
		{Path: "empty", Dir: true},
	}))
	want := []string{
		"delete file before x", "delete gone before x", "delete dir/a before a", "delete dir/b/c before c",
		"write dir a_file 100644 before -", "write file/inner i 100755 before -", "delete link 120000 before gone",
		"write link no_link 100644 before -", "write new dir 120000 before -",
	}
	if got := r.lines(); !slices.Equal(got, want) {
		t.Errorf("the tape is\n%s", strings.Join(got, "\n"))
	}
	if n := bytes.Count(r.buf.Bytes(), []byte(`"spawn_id":7`)); n != len(want) {
		t.Errorf("%d of %d records name the process", n, len(want))
	}
	if names, err := f.List("."); err != nil || strings.Join(names, " ") != "dir empty file link new" {
		t.Errorf("%q, %v", names, err)
	}
	if err := f.Apply(1, []overlay.Change{{Path: "../out"}}); err == nil {
		t.Error("a change outside is taken")
	}
}

func TestCopyNeedsAnEmptyDirectory(t *testing.T) {
	f := newFS(t, nil)
	if err := f.Copy(hostDir(t, map[string]string{"a": "a"})); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(hostDir(t, map[string]string{"a": "a"}), "a")
	for _, o := range []*overlay.Options{{Dir: file}, {Dir: file + "/none"}, {Dir: filepath.Dir(file), Tape: overlay.NewTaped(nil, nil, nil)}} {
		if f, err := overlay.New(o); err == nil {
			t.Errorf("%+v is taken: %v", o, f)
		}
	}
}

// TestManyAtOnce has goroutines do everything at once, for the race detector, and looks that what each wrote is whole.
func TestManyAtOnce(t *testing.T) {
	f := newFS(t, &overlay.Options{Dir: agentsDir(t)})
	r := record(t, f)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			own := fmt.Sprintf("own/%d", g)
			for i := range 30 {
				_, _ = f.List(".")                                         // others make and remove there
				_, _ = f.ReadFile("a.txt")                                 // and there
				_ = f.WriteFile("a.txt", fmt.Appendf(nil, "%d", g), 0o644) // whole, in any order
				_ = f.Rename("dir", fmt.Sprint("moved", g))
				_ = f.Rename(fmt.Sprint("moved", g), "dir")
				_ = f.Remove("old")
				text := fmt.Sprintf("%d %d", g, i)
				if err := f.WriteFile(own, []byte(text), 0o644); err != nil {
					t.Error(err)
				}
				if b, err := f.ReadFile(own); err != nil || string(b) != text {
					t.Errorf("%q, %v", b, err)
				}
				h, err := f.OpenFile("shared", os.O_RDWR|os.O_CREATE|os.O_APPEND, 0)
				if err != nil {
					t.Error(err)
					continue
				}
				_, _ = h.Write([]byte{'x'})
				_, _ = h.ReadAt(make([]byte, 10), 0)
				_ = h.Close()
				_, _ = f.Diff()
			}
		})
	}
	all.Wait()
	if b, err := f.ReadFile("shared"); err != nil || string(b) != strings.Repeat("x", 240) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	must(t, r.rec.Err())
}
