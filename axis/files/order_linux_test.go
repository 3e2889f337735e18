package files

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOrderOfWhatIsUnchanged: a directory in which the run changed nothing, and over which nothing lies, needs no names to be ordered.
func TestOrderOfWhatIsUnchanged(t *testing.T) {
	disk, order := t.TempDir(), filepath.Join(t.TempDir(), "order")
	for _, name := range []string{"a", "b"} {
		must(t, os.WriteFile(filepath.Join(disk, name), nil, 0o600))
	}
	for _, changed := range []map[string]bool{nil, {"b": true}} {
		ok, err := BuildOrder(order, changed, disk)
		must(t, err)
		if want := len(changed) > 0; ok != want {
			t.Errorf("with %v changed: made %v, want %v", changed, ok, want)
		}
	}
}
