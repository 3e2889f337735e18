package overlay

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSpelling: where the host may not tell letter case apart, a name is there only as its directory has it.
func TestSpelling(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "Sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Sub", "File"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := openDir(dir, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	d.folds = true
	if l, err := d.look("Sub/File", askRead); err != nil || l.mode == 0 {
		t.Errorf("%+v, %v", l, err)
	}
	for name, want := range map[string]bool{"Sub": true, "sub": false, "Sub/File": true, "Sub/file": false, "none/x": false} {
		if got := d.spelled(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if l, err := d.look("sub", askRead); err != nil || l.mode != 0 {
		t.Errorf("another spelling is there: %+v, %v", l, err)
	}
}
