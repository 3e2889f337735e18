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
	if err := whiteout(root, "w", ""); err != nil {
		t.Skip("no whiteouts can be made here: ", err)
	}
}

func TestLayer(t *testing.T) {
	skipWithoutWhiteouts(t)
	before := model{".gitignore": "dist\n", "dist/old": "1", "a": "1", "d/x": "1", ".env": "K=1", "s": "p=" + secretWord, "t/.env": "K=1"}
	now := model{".gitignore": "dist\n", "dist/new": "2", "a": "1", "d/x": "2", "d/y": "3", "more/z": "4", ".env": "K=1", "s": "p=changed",
		".tapedeck/r": "x", "out/rec": "x", "later/rec": "x"}
	l := newLayered(t, before, now, &LayerOptions{Scrubber: fakeScrubber{}})
	must(t, os.RemoveAll(l.layer))
	stats, err := BuildLayer(l.want, l.store, l.real, l.layer, &LayerOptions{
		Scrubber: fakeScrubber{}, Exclude: []string{filepath.Join(l.real, "out")}, Gone: []string{filepath.Join(l.real, "later")}, Changed: map[string]bool{"d/x": true},
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
	for _, p := range []string{"d/y", "more", "dist/old", "later"} {
		if _, err := os.Lstat(filepath.Join(out, p)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is shown: %v", p, err)
		}
	}
}

// TestLayerOfAPartialTree: it shows what it names, hides what was absent, and leaves everything else, whatever stands where now.
func TestLayerOfAPartialTree(t *testing.T) {
	skipWithoutWhiteouts(t)
	was, real := t.TempDir(), t.TempDir()
	model{"d/x": "1", "dir-now-file/y": "1", "file-now-dir": "1", "gone/deep/z": "1", "s": "p=" + secretWord, "same": "1", "l": "->x"}.build(t, was)
	model{"d/x": "2", "d/other": "o", "d/new": "n", "dir-now-file": "f", "file-now-dir/q": "q", "new/a/b": "n", "s": "p=" + secretWord,
		"same": "1", "l": "x", "more": "m"}.build(t, real)
	store := cas.NewMemory()
	tree := snap(t, was, &SnapOptions{Store: store, Scrubber: fakeScrubber{}})
	tree.Partial, tree.Absent = true, []string{"d/new", "never", "new"}
	layer, out := filepath.Join(t.TempDir(), "layer"), filepath.Join(t.TempDir(), "merged")
	stats, err := BuildLayer(tree, store, real, layer, &LayerOptions{Scrubber: fakeScrubber{}})
	must(t, err)
	merge(t, layer, real, out)
	want := model{"d/x": "1", "d/other": "o", "dir-now-file/y": "1", "file-now-dir": "1", "gone/deep/z": "1", "s": "p=" + secretWord,
		"same": "1", "l": "->x", "more": "m"}
	expected := t.TempDir()
	want.build(t, expected)
	if left := changedPaths(Changes(snap(t, expected, nil), snap(t, out, nil))); len(left) > 0 {
		t.Errorf("shown otherwise: %q", left)
	}
	if stats.Hidden != 2 || stats.Unchanged != 2 || stats.Written != 5 || len(stats.Notes) > 0 {
		t.Errorf("%+v", stats)
	}
	must(t, os.WriteFile(filepath.Join(real, "s"), []byte("other"), 0o644))
	stats, err = BuildLayer(tree, store, real, filepath.Join(t.TempDir(), "layer"), &LayerOptions{Scrubber: fakeScrubber{}})
	must(t, err)
	if diff := cmp.Diff([]LayerNote{{"s", NoteScrubbed}}, stats.Notes); diff != "" {
		t.Error(diff)
	}
}

// TestLayerOfWhatTheRunMade: a directory of the run that stands as it left it is no news, what somebody put there since is.
func TestLayerOfWhatTheRunMade(t *testing.T) {
	skipWithoutWhiteouts(t)
	real := t.TempDir()
	model{"made/deep/x": "1", "more/mine/y": "1", "more/x": "1", "other/z": "1"}.build(t, real)
	stats, err := BuildLayer(&Tree{Partial: true, Absent: []string{"made", "more", "other"}}, cas.NewMemory(), real, filepath.Join(t.TempDir(), "layer"),
		&LayerOptions{Changed: map[string]bool{"made/deep/x": true, "more/x": true}})
	must(t, err)
	if diff := cmp.Diff(&LayerStats{Hidden: 3, Differing: 2, Differ: []string{"more/mine", "other"}}, stats); diff != "" {
		t.Error(diff)
	}
}

// TestLayerOfWhatTheRunRemoved: that it is missing is no news, what stands there since is.
func TestLayerOfWhatTheRunRemoved(t *testing.T) {
	skipWithoutWhiteouts(t)
	was, real, store := t.TempDir(), t.TempDir(), cas.NewMemory()
	model{"dir/f": "1", "dir/sub/g": "1", "mine/f": "1", "made/f": "1", "x": "1"}.build(t, was)
	model{"made/f": "2", "made/new": "n"}.build(t, real)
	removed := map[string]bool{"dir": true, "made": true, "x": true}
	stats, err := BuildLayer(snap(t, was, &SnapOptions{Store: store}), store, real, filepath.Join(t.TempDir(), "layer"), &LayerOptions{Removed: removed})
	must(t, err)
	if diff := cmp.Diff(&LayerStats{Written: 5, Hidden: 1, Bytes: 5, Differing: 3, Differ: []string{"made/f", "made/new", "mine/f"}}, stats); diff != "" {
		t.Error(diff)
	}
}

// TestLayerOfAWholeAndAPartialTree: what the snapshot does not cover is as it was found, too.
func TestLayerOfAWholeAndAPartialTree(t *testing.T) {
	skipWithoutWhiteouts(t)
	real, store := t.TempDir(), cas.NewMemory()
	model{".gitignore": "dist\n", "x": "1", "dist/old": "1", "dist/other": "o"}.build(t, real)
	before := snap(t, real, &SnapOptions{Store: store})
	p := newProgram(t, &JournalOptions{Store: store}, JournalRoot{Dir: real, Tree: before})
	must(t, p.write(filepath.Join(real, "x"), "2"))
	must(t, p.write(filepath.Join(real, "dist/old"), "2"))
	must(t, p.write(filepath.Join(real, "dist/new"), "2"))
	p.take(p.j.Barrier())
	layer, out := filepath.Join(t.TempDir(), "layer"), filepath.Join(t.TempDir(), "merged")
	_, err := BuildLayer(before.With(p.j.Found(0)), store, real, layer, nil)
	must(t, err)
	merge(t, layer, real, out)
	expected := t.TempDir()
	model{".gitignore": "dist\n", "x": "1", "dist/old": "1", "dist/other": "o"}.build(t, expected)
	if left := changedPaths(Changes(snapAll(t, expected), snapAll(t, out))); len(left) > 0 {
		t.Errorf("shown otherwise: %q", left)
	}
}

// TestLayerNotesWhatItCannotLookAt: such a path is left as it is, and the rest is shown.
func TestLayerNotesWhatItCannotLookAt(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root looks at everything")
	}
	real, store := t.TempDir(), cas.NewMemory()
	model{"closed/x": "1", "y": "2"}.build(t, real)
	tree := snap(t, real, &SnapOptions{Store: store})
	tree.Partial = true
	must(t, os.WriteFile(filepath.Join(real, "y"), []byte("3"), 0o644))
	must(t, os.Chmod(filepath.Join(real, "closed"), 0))
	defer os.Chmod(filepath.Join(real, "closed"), 0o755)
	stats, err := BuildLayer(tree, store, real, filepath.Join(t.TempDir(), "layer"), nil)
	must(t, err)
	if diff := cmp.Diff([]LayerNote{{"closed/x", NoteUnreadable}}, stats.Notes); diff != "" || stats.Written != 1 {
		t.Errorf("%+v\n%s", stats, diff)
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
