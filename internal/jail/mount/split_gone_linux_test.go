package mount

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGoneWhileSplitting: others work below a temporary directory, so what was listed there may be gone when its turn comes. That
// is no reason not to start.
func TestGoneWhileSplitting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upper, err := OpenPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer upper.Close()
	gone := layerDir{filepath.Join(dir, "gone"), "/host/gone"}
	for name, target := range map[string]Target{"beside mounts": {}, "a mount": {Covered: []string{gone.host}}} {
		for _, mode := range []os.FileMode{os.ModeDir, os.ModeSymlink, 0} {
			if name == "a mount" && os.Geteuid() != 0 {
				continue // only root may copy a mount here
			}
			p := &split{w: &World{plan: new(Plan)}, target: &target, source: &source{layers: upper, upper: "."}}
			if err := p.put("made", &mergedEntry{name: "gone", mode: mode, layers: []layerDir{gone}}); err != nil {
				t.Errorf("%s, %v: %v", name, mode, err)
			}
			os.Remove(filepath.Join(dir, "made"))
		}
	}
	if entries, err := mergeLayers([]layerDir{gone, {filepath.Dir(dir), "/host"}}); err != nil || len(entries) == 0 {
		t.Errorf("a layer that is gone: %d entries, %v", len(entries), err)
	}
}
