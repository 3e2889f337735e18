//go:build unix

package overlay_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

// copiedTree is a tree, and a directory that is a copy of it.
func copiedTree(t *testing.T) (f *overlay.FS, dir string) {
	t.Helper()
	script := "#!/bin/sh\n"
	f, err := overlay.New(&overlay.Options{Dir: hostDir(t, map[string]string{"a": script, "b": script, "app/same": script})})
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	must(t, f.WriteFile("app/run.sh", []byte(script), 0o755))
	must(t, f.Symlink("../a", "app/first"))
	must(t, f.Symlink("../a", "app/other"))
	must(t, f.Mkdir("app/empty", 0o755))
	dir = filepath.Join(t.TempDir(), "copy")
	must(t, f.Copy(dir))
	return f, dir
}

func runIn(t *testing.T, dir, text string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", text)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestChanged(t *testing.T) {
	f, dir := copiedTree(t)
	runIn(t, filepath.Join(dir, "app"), `rm ../a; mkdir -p new/er; printf 'x\377' >new/er/c; chmod +x ../b; touch same; echo longer >run.sh
		rmdir empty; ln -s ../b link; ln -sf ../b other; mkdir -p deep/est old; rmdir old`)
	want := []overlay.Change{
		{Path: "a", Deleted: true},
		{Path: "app/deep/est", Dir: true},
		{Path: "app/empty", Deleted: true},
		{Path: "app/link", Target: "../b"},
		{Path: "app/new/er/c", Content: []byte("x\xff"), Perm: 0o644},
		{Path: "app/other", Target: "../b"},
		{Path: "app/run.sh", Content: []byte("longer\n"), Perm: 0o755},
		{Path: "b", Content: []byte("#!/bin/sh\n"), Perm: 0o755},
	}
	got, err := f.Changed(dir)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	must(t, f.Apply(1, got))
	must(t, f.Copy(dir))
	if got, err := f.Changed(dir); err != nil || len(got) > 0 {
		t.Errorf("of a directory that is the tree: %+v, %v", got, err)
	}
}

// TestChangedWithinATick changes a file, and nothing that its times and size tell of.
func TestChangedWithinATick(t *testing.T) {
	f, dir := copiedTree(t)
	runIn(t, dir, `touch -r app/run.sh was; printf '#!/bin/SH\n' >app/run.sh; touch -r was app/run.sh; rm was`)
	got, err := f.Changed(dir)
	must(t, err)
	if diff := cmp.Diff([]overlay.Change{{Path: "app/run.sh", Content: []byte("#!/bin/SH\n"), Perm: 0o755}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestChangedIntoWhatNoTreeHolds is an error.
func TestChangedIntoWhatNoTreeHolds(t *testing.T) {
	for want, text := range map[string]string{
		"fifo is neither a file": "mkfifo fifo",
		`"\xff" is not UTF-8`:    `touch "$(printf '\377')"`,
	} {
		f, dir := copiedTree(t)
		runIn(t, dir, text)
		if _, err := f.Changed(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
