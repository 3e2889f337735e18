package files

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnapSpecialFiles(t *testing.T) {
	root := t.TempDir()
	model{"a": "x", "locked/b": "y"}.build(t, root)
	must(t, syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644))
	l, err := net.Listen("unix", filepath.Join(root, "sock"))
	must(t, err)
	defer l.Close()
	want := []NotCovered{{"sock", Special}}
	if os.Geteuid() != 0 {
		must(t, os.Chmod(filepath.Join(root, "locked"), 0))
		defer os.Chmod(filepath.Join(root, "locked"), 0o755)
		want = []NotCovered{{"locked", Unreadable}, {"sock", Special}}
	}
	tree := snap(t, root, nil)
	if diff := cmp.Diff(want, tree.NotCovered); diff != "" {
		t.Error(diff)
	}
	if e, ok := tree.Lookup("fifo"); !ok || e.Mode.String() != "010644" {
		t.Errorf("the FIFO: %v", e)
	}
}

// TestSnapThroughDescriptor reads a tree as a jail gives it: by /proc/self/fd/N.
func TestSnapThroughDescriptor(t *testing.T) {
	root := t.TempDir()
	model{"a/b": "x", "l": "->a", "out.rec/x": ""}.build(t, root)
	f, err := os.Open(root)
	must(t, err)
	defer f.Close()
	opts := &SnapOptions{RootName: root, Exclude: []string{filepath.Join(root, "out.rec")}}
	want := snap(t, root, opts)
	got := snap(t, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), opts)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(got.Entries) != 3 || len(got.NotCovered) != 1 {
		t.Errorf("%+v", got)
	}
}
