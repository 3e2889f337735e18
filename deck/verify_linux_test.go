package deck_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// TestVerifySeesEditedFiles edits what an unsealed recording holds twice.
func TestVerifySeesEditedFiles(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.unsealed = true
	for _, name := range []string{"in.txt", "cache"} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte("as recorded\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	res, _ := b.recordOutside("errand")
	replace := func(old, now string) func(b []byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(now), 1) }
	}
	for _, c := range []struct {
		file string
		edit func(b []byte) []byte
		want string // of the problem, in which file
	}{
		{"workspace.diff", replace("+", "-"), "workspace.diff:"},
		{"workspace.diff", func(b []byte) []byte { return append(b, '\n') }, "workspace.diff:"},
		{"workspace.diff", func([]byte) []byte { return nil }, "workspace.diff:1: "},
		{"tree.json", replace("\"cache\"", "\"aside\""), "workspace.diff"},
		{"recording.json", replace("\"code\": 0", "\"code\": 1"), "recording.json: exit"},
		{"recording.json", replace("\"argv\": [", "\"argv\": [\"env\","), "recording.json: argv"},
	} {
		path := filepath.Join(res.Recording.Dir, c.file)
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		now := c.edit(bytes.Clone(was))
		if bytes.Equal(was, now) {
			t.Fatalf("%s has nothing to edit:\n%s", c.file, was)
		}
		write := func(b []byte) {
			t.Helper()
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(now)
		v, err := verified(res.Recording.Dir)
		if err != nil || len(v.Problems) != 1 || !strings.Contains(v.Problems[0].String(), c.want) {
			t.Errorf("%s: %+v, %v, want %s", c.file, v, err, c.want)
		}
		write(was)
	}
	b.holds(res.Recording.Dir)
}

// Another version may have written the same changes in another way: that is no fault, and said.
func TestVerifyOfAnotherVersionsPatch(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.unsealed = true
	for _, name := range []string{"in.txt", "cache"} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte("as recorded\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	res, _ := b.recordOutside("errand")
	for file, edit := range map[string][2]string{
		"workspace.diff": {"+", "-"}, "recording.json": {"\"tapedeck\": \"" + recording.Version, "\"tapedeck\": \"0.0.1"},
	} {
		path := filepath.Join(res.Recording.Dir, file)
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(edit[0])) {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(edit[0]), []byte(edit[1]), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v, err := verified(res.Recording.Dir)
	if err != nil || len(v.Problems) > 0 || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "0.0.1 wrote it") {
		t.Errorf("%+v, %v", v, err)
	}
}

// A replay of another program that is kept as a recording is that program's.
func TestReplayKeepsTheOtherProgram(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	res, _ := b.recordOutside("errand")
	kept := filepath.Join(t.TempDir(), "kept")
	b.replay(res.Recording, &deck.ReplayOptions{Proxy: true, Argv: []string{"sh", "-c", "exit 3"}, Out: kept})
	rec, err := recording.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	if m := rec.Manifest; strings.Join(m.Argv, " ") != "sh -c exit 3" || filepath.Base(m.Program.Path) != "sh" || m.Exit.Code != 3 {
		t.Errorf("%q, %+v, %+v", m.Argv, m.Program, m.Exit)
	}
}
