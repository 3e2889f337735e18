package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

func TestWriteFileReplacesWhatStandsThere(t *testing.T) {
	for name, o := range map[string]*durable.Options{"nil": nil, "sync": {Sync: true}, "mode": {Mode: 0o644}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			for _, want := range []string{"the first, longer", "the second"} {
				if err := durable.WriteFile(path, []byte(want), o); err != nil {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(path); err != nil || string(b) != want {
					t.Errorf("%q, %v", b, err)
				}
			}
			checkAlone(t, path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			want := os.FileMode(0o600)
			if o != nil && o.Mode != 0 {
				want = o.Mode
			}
			if runtime.GOOS != "windows" && info.Mode() != want {
				t.Errorf("mode %s, want %s", info.Mode(), want)
			}
		})
	}
}

// checkAlone checks that nothing but path is in its directory.
func checkAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestAFailedReplacementLeavesTheOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(path, []byte("new"), nil); err == nil {
		t.Error("a directory was replaced by a file")
	}
	checkAlone(t, path)
}

func TestWriteFileNeedsItsDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "file")
	if err := durable.WriteFile(path, nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := durable.Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(durable.SyncFile(path), durable.SyncDir(filepath.Dir(path))); err != nil {
		t.Error(err)
	}
	if err := durable.SyncFile(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
