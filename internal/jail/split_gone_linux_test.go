package jail

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGoneWhileSplitting: others work below a temporary directory, so what was listed there may be gone when its turn comes. That
// is no reason not to start.
func TestGoneWhileSplitting(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	p := &split{w: &world{plan: new(mountPlan)}, target: new(mountTarget)}
	for _, mode := range []os.FileMode{os.ModeDir, os.ModeSymlink, 0} {
		if err := p.put("gone", &mergedEntry{name: "gone", mode: mode, layers: []layerDir{{gone, gone}}}); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
}
