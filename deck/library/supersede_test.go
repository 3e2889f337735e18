package library

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// TestSupersede: the new recording stands at the old one's path, beside what is no recording's; where that cannot be, all is as it was.
func TestSupersede(t *testing.T) {
	for _, taken := range []bool{false, true} {
		dir := t.TempDir()
		for name, text := range map[string]string{"old/recording.json": "old", "old/run.tape": "old", "old/note.txt": "mine", "old/more.txt": "mine", "made/recording.json": "new"} {
			if taken && name == "made/recording.json" {
				name = "made/note.txt" // is in the way
			}
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		old, made := &recording.Recording{Dir: filepath.Join(dir, "old")}, &recording.Recording{Dir: filepath.Join(dir, "made")}
		err := Supersede(old, made)
		if (err != nil) != taken {
			t.Fatalf("taken %t: %v", taken, err)
		}
		want := map[string]string{"recording.json": "new", "run.tape": "", "note.txt": "mine", "more.txt": "mine"}
		if taken {
			want["recording.json"], want["run.tape"] = "old", "old"
		}
		for name, text := range want {
			if b, _ := os.ReadFile(filepath.Join(dir, "old", name)); string(b) != text {
				t.Errorf("taken %t: %s holds %q, want %q", taken, name, b, text)
			}
		}
		if recording.Exists(made.Dir) != taken {
			t.Errorf("taken %t: %s is there: %t", taken, made.Dir, !taken)
		}
	}
}
