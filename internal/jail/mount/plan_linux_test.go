package mount

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"golang.org/x/sys/unix"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "real", "dangling": "gone/file", "far": "/run/none/x", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(dir+"/real", 0o755), os.WriteFile(dir+"/real/f", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"/": "/", dir + "/real/f": dir + "/real/f", dir + "/link/f": dir + "/real/f", dir + "/link/none/x": dir + "/real/none/x",
		dir + "/dangling": dir + "/gone/file", dir + "/far": "/run/none/x", dir + "/loop": dir + "/loop", dir + "/none/../real": dir + "/real",
	} {
		if got := resolve(in); got != want {
			t.Errorf("resolve(%s) = %s, want %s", in, got, want)
		}
	}
}

// TestSubmountsOfKernel: what is no file system of files, or cannot be written to, is no layer.
func TestSubmountsOfKernel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/at", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, m := range []mountinfo.Line{{Kind: "proc"}, {Kind: "sysfs"}, {Kind: "tmpfs", Flags: unix.MOUNT_ATTR_RDONLY}} {
		m.Point = dir + "/at"
		p := &Plan{Targets: []Target{{Path: dir, Overlay: &Overlay{Target: dir, Lowers: []string{dir}}}}}
		p.addSubmount(&p.Targets[0], &m)
		if len(p.Targets) != 1 || !slices.Equal(p.Targets[0].Submounts, []string{m.Point}) {
			t.Errorf("%s: %+v", m.Kind, p.Targets)
		}
	}
}
