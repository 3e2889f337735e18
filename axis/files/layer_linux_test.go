package files

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// merge writes what an overlay of layer above real shows into out: overlayfs in a few lines.
func merge(t testing.TB, layer, real, out string) {
	t.Helper()
	info, err := os.Lstat(layer)
	if err != nil {
		info, err = os.Lstat(real)
		must(t, err)
		layer, real = real, ""
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		must(t, os.MkdirAll(out, 0o755))
		for _, name := range mergedNames(t, layer, real) {
			merge(t, filepath.Join(layer, name), filepath.Join(real, name), filepath.Join(out, name))
		}
		must(t, os.Chmod(out, info.Mode()))
	case fs.ModeSymlink:
		target, err := os.Readlink(layer)
		must(t, err)
		must(t, os.Symlink(target, out))
	case 0:
		b, err := os.ReadFile(layer)
		must(t, err)
		must(t, os.WriteFile(out, b, 0o600))
		must(t, os.Chmod(out, info.Mode()))
	default:
		if !isWhiteout(layer) {
			t.Fatalf("%s is %v", layer, info.Mode())
		}
	}
}

func isWhiteout(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

func mergedNames(t testing.TB, dirs ...string) []string {
	seen := map[string]bool{}
	var out []string
	for _, d := range dirs {
		if info, err := os.Lstat(d); d == "" || err != nil || !info.IsDir() {
			continue
		}
		entries, err := os.ReadDir(d)
		must(t, err)
		for _, e := range entries {
			if !seen[e.Name()] {
				seen[e.Name()] = true
				out = append(out, e.Name())
			}
		}
		var opaque [1]byte
		if n, _ := unix.Lgetxattr(d, "user.overlay.opaque", opaque[:]); n == 1 && opaque[0] == 'y' {
			break
		}
	}
	return out
}

// A layered is one case: the recorded tree, and a layer that shows it above what the disk holds now.
type layered struct {
	want        *Tree
	store       *cas.Memory
	real, layer string
	stats       *LayerStats
}

func newLayered(t testing.TB, before, now model, opts *LayerOptions) *layered {
	t.Helper()
	was := t.TempDir()
	l := &layered{store: cas.NewMemory(), real: t.TempDir(), layer: filepath.Join(t.TempDir(), "layer")}
	before.build(t, was)
	now.build(t, l.real)
	l.want = snap(t, was, &SnapOptions{Store: l.store, Scrubber: fakeScrubber{}})
	var err error
	l.stats, err = BuildLayer(l.want, l.store, l.real, l.layer, opts)
	must(t, err)
	return l
}

func TestLayerShowsTheRecordedTree(t *testing.T) {
	skipWithoutWhiteouts(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := genModel(rt, "tree").open()
		l := newLayered(t, m, mutate(rt, m).open(), nil)
		out := filepath.Join(t.TempDir(), "merged")
		merge(t, l.layer, l.real, out)
		for _, c := range Changes(l.want, snap(t, out, nil)) {
			rt.Errorf("%q shows %s, recorded is %s", c.Path, describe(c.After), describe(c.Before))
		}
	})
}

func skipWithoutWhiteouts(t *testing.T) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer root.Close()
	if err := whiteout(root, "w"); err != nil {
		t.Skip("no whiteouts can be made here: ", err)
	}
}

func TestLayer(t *testing.T) {
	skipWithoutWhiteouts(t)
	before := model{".gitignore": "dist\n", "dist/old": "1", "a": "1", "d/x": "1", ".env": "K=1", "s": "p=" + secretWord, "t/.env": "K=1"}
	now := model{".gitignore": "dist\n", "dist/new": "2", "a": "1", "d/x": "2", "d/y": "3", "more/z": "4", ".env": "K=1", "s": "p=changed",
		".tapedeck/r": "x", "out/rec": "x"}
	l := newLayered(t, before, now, &LayerOptions{Scrubber: fakeScrubber{}})
	must(t, os.RemoveAll(l.layer))
	stats, err := BuildLayer(l.want, l.store, l.real, l.layer, &LayerOptions{
		Scrubber: fakeScrubber{}, Exclude: []string{filepath.Join(l.real, "out")}, Changed: map[string]bool{"d/x": true},
	})
	must(t, err)
	want := &LayerStats{Unchanged: 3, Written: 3, Hidden: 2, Differing: 4, Differ: []string{"d/y", "s", "t/.env"}, Bytes: int64(1 + len("p="+placeholder) + len("td_file_0123456789ab\n")),
		Notes: []LayerNote{{"s", NoteScrubbed}, {"t/.env", NoteScrubbed}}}
	if diff := cmp.Diff(want, stats); diff != "" {
		t.Error(diff)
	}
	out := filepath.Join(t.TempDir(), "merged")
	merge(t, l.layer, l.real, out)
	for p, text := range map[string]string{"dist/new": "2", "d/x": "1", ".env": "K=1", "s": "p=" + placeholder, ".tapedeck/r": "x", "out/rec": "x"} {
		if b, err := os.ReadFile(filepath.Join(out, p)); err != nil || string(b) != text {
			t.Errorf("%s holds %q, %v", p, b, err)
		}
	}
	for _, p := range []string{"d/y", "more", "dist/old"} {
		if _, err := os.Lstat(filepath.Join(out, p)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is shown: %v", p, err)
		}
	}
}

func TestLayerOfAnAbsentRootIsTheTree(t *testing.T) {
	l := newLayered(t, model{"a/b": "*1", "l": "->a"}, model{}, nil)
	layer := filepath.Join(t.TempDir(), "layer")
	_, err := BuildLayer(l.want, l.store, filepath.Join(l.real, "absent"), layer, nil)
	must(t, err)
	if left := Changes(l.want, snap(t, layer, nil)); len(left) > 0 {
		t.Errorf("%v", left)
	}
}

func TestLayerCoversWhatItCannotRead(t *testing.T) {
	skipWithoutWhiteouts(t)
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	l := newLayered(t, model{"d/x": "1"}, model{"d/x": "1", "d/y": "2"}, nil)
	must(t, os.Chmod(filepath.Join(l.real, "d"), 0))
	defer os.Chmod(filepath.Join(l.real, "d"), 0o755)
	layer := filepath.Join(t.TempDir(), "layer")
	_, err := BuildLayer(l.want, l.store, l.real, layer, nil)
	must(t, err)
	if names := mergedNames(t, filepath.Join(layer, "d"), filepath.Join(l.real, "d")); len(names) != 1 || names[0] != "x" {
		t.Errorf("d shows %q", names)
	}
}

// TestLayerMounted mounts overlays for real, in a user namespace, and takes a snapshot of what they show.
func TestLayerMounted(t *testing.T) {
	if os.Getenv("FILES_TEST_SNAP") != "" {
		must(t, snap(t, os.Getenv("FILES_TEST_SNAP"), nil).Encode(os.Stdout))
		os.Exit(0)
	}
	if out, err := exec.Command("unshare", "-Urm", "true").CombinedOutput(); err != nil {
		t.Skipf("no user namespaces: %v %s", err, out)
	}
	skipWithoutWhiteouts(t)
	gen := rapid.Custom(func(t *rapid.T) [2]model {
		m := genModel(t, "tree").open()
		return [2]model{m, mutate(t, m).open()}
	})
	for seed := range 12 {
		pair := gen.Example(seed)
		l := newLayered(t, pair[0], pair[1], nil)
		got := mountedTree(t, l)
		for _, c := range Changes(l.want, got) {
			t.Errorf("%d: %q shows %s, recorded is %s", seed, c.Path, describe(c.After), describe(c.Before))
		}
	}
}

func mountedTree(t *testing.T, l *layered) *Tree {
	t.Helper()
	at := t.TempDir()
	cmd := exec.Command("unshare", "-Urm", "sh", "-c",
		`mount -t overlay -o "userxattr,lowerdir=$1:$2" overlay "$3" && exec "$4" -test.run=^TestLayerMounted$`,
		"sh", l.layer, l.real, at, os.Args[0])
	cmd.Env = append(os.Environ(), "FILES_TEST_SNAP="+at)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no overlay in a user namespace: %v %s", err, errs.String())
	}
	tree, err := DecodeTree(strings.NewReader(string(out)))
	must(t, err)
	return tree
}
