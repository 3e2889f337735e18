package faultfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

func write(t testing.TB, disk faultfs.FS, name, text string, at int64) faultfs.File {
	t.Helper()
	f, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt([]byte(text), at); err != nil || n != len(text) {
		t.Fatal(n, err)
	}
	return f
}

func read(t testing.TB, disk faultfs.FS, name string) string {
	t.Helper()
	f, err := disk.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestBothDisksAreAlike runs the same calls on the machine's file system and on Memory.
func TestBothDisksAreAlike(t *testing.T) {
	for name, disk := range map[string]faultfs.FS{"os": faultfs.OS, "memory": faultfs.NewMemory()} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b")
			path := filepath.Join(dir, "file")
			if _, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); !errors.Is(err, fs.ErrNotExist) {
				t.Error("a file in no directory:", err)
			}
			if err := disk.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if info, err := disk.Stat(dir); err != nil || !info.IsDir() {
				t.Error(info, err)
			}
			f := write(t, disk, path, "hello", 3)
			if err := errors.Join(f.Truncate(6), f.Sync(), disk.SyncDir(dir)); err != nil {
				t.Error(err)
			}
			if got := read(t, disk, path); got != "\x00\x00\x00hel" {
				t.Errorf("%q", got)
			}
			if err := errors.Join(f.Truncate(2), f.Truncate(4), f.Close()); err != nil {
				t.Error(err)
			}
			if got := read(t, disk, path); got != "\x00\x00\x00\x00" {
				t.Errorf("cut and made longer: %q", got)
			}
			if _, err := f.Write(nil); !errors.Is(err, fs.ErrClosed) {
				t.Error("written when closed:", err)
			}
			if _, err := disk.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0); !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
			a, err := disk.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			a.Write([]byte("x"))
			a.Write([]byte("y"))
			if err := errors.Join(a.Close(), disk.Rename(path, path+"2")); err != nil {
				t.Error(err)
			}
			if got := read(t, disk, path+"2"); got != "\x00\x00\x00\x00xy" {
				t.Errorf("%q", got)
			}
			entries, err := disk.ReadDir(dir)
			if err != nil || len(entries) != 1 || entries[0].Name() != "file2" || entries[0].IsDir() {
				t.Error(entries, err)
			}
			if err := disk.Remove(path + "2"); err != nil {
				t.Error(err)
			}
			if _, err := disk.Stat(path + "2"); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
}

// outcomes are all that a file may hold after the power was cut.
func outcomes(t testing.TB, disk *faultfs.Memory, name string) map[string]bool {
	all := map[string]bool{}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		all[read(t, disk.PowerCut(r), name)] = true
	}
	return all
}

func TestPowerCutKeepsWhatWasSynced(t *testing.T) {
	disk := faultfs.NewMemory()
	disk.MkdirAll("/d", 0o700)
	f := write(t, disk, "/d/f", "first", 0)
	if got := outcomes(t, disk, "/d/f"); !got["open /d/f: file does not exist"] || !got["first"] || !got[""] {
		t.Errorf("nothing was synced: %v", got)
	}
	f.Sync()
	disk.SyncDir("/d")
	f.WriteAt([]byte("other"), 0)
	if got := outcomes(t, disk, "/d/f"); len(got) != 2 || !got["first"] || !got["other"] {
		t.Errorf("one sector was written: %v", got)
	}
	disk.Drop("/d/f") // a sync that failed
	f.Sync()          // one that says it worked
	if got := read(t, disk, "/d/f"); got != "other" {
		t.Errorf("read from the cache: %q", got)
	}
	if got := outcomes(t, disk, "/d/f"); len(got) != 1 || !got["first"] {
		t.Errorf("a second sync brought back what the first had dropped: %v", got)
	}
	if got := outcomes(t, disk.Kill(), "/d/f"); len(got) != 1 || !got["first"] {
		t.Errorf("the death of a process brought bytes to the disk: %v", got)
	}
	if got := read(t, disk.Kill(), "/d/f"); got != "other" {
		t.Errorf("the death of a process changed a file: %q", got)
	}
}

func TestPowerCutTearsAtSectors(t *testing.T) {
	disk := faultfs.NewMemory()
	disk.MkdirAll("/d", 0o700)
	f := write(t, disk, "/d/f", "", 0)
	f.Truncate(2000)
	f.Sync()
	disk.SyncDir("/d")
	f.WriteAt(bytes.Repeat([]byte("x"), 1000), 500)
	got := outcomes(t, disk, "/d/f")
	if len(got) != 8 { // 12 bytes, 512, 476
		t.Errorf("%d outcomes, want 8", len(got))
	}
}

func TestHookFailsAWriteInTheMiddle(t *testing.T) {
	disk := faultfs.NewMemory()
	disk.MkdirAll("/d", 0o700)
	full := false
	hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpWrite && full {
			c.Keep = c.Size / 2
			return syscall.ENOSPC
		}
		return nil
	}}
	f := write(t, hook, "/d/f", "", 0)
	full = true
	if n, err := f.Write([]byte("1234")); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Error(n, err)
	}
	if got := read(t, disk, "/d/f"); got != "12" {
		t.Errorf("%q", got)
	}
}
