package recording

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// TestHostileConfig: what makes a YAML parser eat memory or time is refused before it does.
func TestHostileConfig(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%[1]d [%s]\n", i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	for name, text := range map[string]string{
		"brackets":           strings.Repeat("[", 400<<10),
		"fewer brackets":     strings.Repeat("[", 60<<10),
		"a bracket a line":   strings.Repeat("[\n", 30<<10),
		"braces":             strings.Repeat("{a: ", 15<<10),
		"dashes":             strings.Repeat("- ", 30<<10),
		"dashes and tabs":    strings.Repeat("-\t", 30<<10),
		"quoted before":      "a: |\n  '\n" + strings.Repeat("[", 60<<10),
		"laughs":             laughs.String(),
		"merged into itself": "masks: &a\n  <<: *a\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if m, err := ReadConfig(dir); err == nil {
				t.Errorf("read as %+v", m)
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
				t.Errorf("it took %d MiB", n>>20)
			}
		})
	}
}

// TestConfigBounds: what is within the bounds is read, an empty file and one of comments too, and an alias is told as such.
func TestConfigBounds(t *testing.T) {
	var c struct {
		Masks *Masking `yaml:"masks"`
	}
	for _, text := range []string{"", "# nothing\n", "masks:\n"} {
		if err := plainyaml.Decode([]byte(text), maxConfig, &c); err != nil || c.Masks != nil {
			t.Errorf("%q: %+v, %v", text, c.Masks, err)
		}
	}
	many := "masks:\n  add:\n" + strings.Repeat("    - name: n\n      pattern: '[a]{2}-([0-9]+)'\n", 800)
	if err := plainyaml.Decode([]byte(many), maxConfig, &c); err != nil || len(c.Masks.Add) != 800 {
		t.Errorf("800 masks: %v", err)
	}
	if err := plainyaml.Decode([]byte("masks:\n  off: &a [time]\n"), maxConfig, &c); err == nil || !strings.Contains(err.Error(), plainyaml.ErrAnchor) {
		t.Errorf("an anchor: %v", err)
	}
}
