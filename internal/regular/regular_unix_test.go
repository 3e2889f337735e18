//go:build unix

package regular_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

func TestWhatIsNoFileIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, target := range map[string]string{"link": "fifo", "dangling": "nowhere"} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"fifo": "fifo is a FIFO", "link": "link is a FIFO", "socket": "socket is a socket", ".": ". is a directory", "/dev/null": "/dev/null is a device",
	} {
		_, errOpen := regular.Open(path)
		_, errTarget := regular.Target(path)
		for what, err := range map[string]error{"Open": errOpen, "Target": errTarget} {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
	}
	for _, path := range []string{"none", "dangling"} {
		if _, err := regular.Open(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open %s: %v", path, err)
		}
		if got, err := regular.Target(path); err != nil || got != path {
			t.Errorf("Target %s: %q, %v", path, got, err)
		}
	}
}

func TestALinkLeadsToItsFile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	if got, err := regular.Target(link); err != nil || got != file {
		t.Errorf("%q, %v", got, err)
	}
	f, err := regular.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
