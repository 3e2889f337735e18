//go:build unix

package cas_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A recording may come from anywhere: what stands in a blob's place must neither lead elsewhere nor block.
func TestSpecialFilesInABlobsPlaceAreRefused(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"symlink to its bytes": func(path string) error {
			target := filepath.Join(filepath.Dir(path), "target")
			return errors.Join(os.WriteFile(target, []byte("a blob"), 0o600), os.Symlink(target, path))
		},
		"symlink to nothing": func(path string) error { return os.Symlink("nothing", path) },
		"fifo":               func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"socket":             makeSocket,
	} {
		t.Run(name, func(t *testing.T) {
			s := openDir(t, nil)
			mustPut(t, s, "another blob")
			if err := place(s.Path(cas.Sum([]byte("a blob")))); err != nil {
				t.Fatal(err)
			}
			checkNotRegular(t, s, "a blob")
		})
	}
}

func TestLinkSharesTheFile(t *testing.T) {
	s := openDir(t, nil)
	from := filepath.Join(t.TempDir(), "from")
	if err := os.WriteFile(from, []byte("a blob"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := cas.Sum([]byte("a blob"))
	if _, err := s.Link(d, from); err != nil {
		t.Fatal(err)
	}
	a, errA := os.Stat(from)
	b, errB := os.Stat(s.Path(d))
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		t.Errorf("copied: %v, %v", errA, errB)
	}
}

func TestAStoreThatCannotBeWrittenSaysSo(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write anywhere")
	}
	s := openDir(t, nil)
	d := mustPut(t, s, "a blob")
	dir := filepath.Dir(s.Path(d))
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) }) // it is to be removed
	if _, err := s.Put([]byte("another")); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
