package deck

import (
	"path/filepath"
	"testing"

	"github.com/adrg/xdg"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// TestConfigDir: the keys have an absolute path, which a jail can cover, where HOME has none.
func TestConfigDir(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(xdg.Reload) // after the variables are back
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "rel")
	xdg.Reload()
	for set, want := range map[string]string{"": "rel/.config/tapedeck", "set": "set", "/set": "/set"} {
		if !filepath.IsAbs(want) {
			want = filepath.Join(dir, want)
		}
		if got := recording.ConfigDir(set); got != want {
			t.Errorf("configDir(%q) = %s, want %s", set, got, want)
		}
	}
}
