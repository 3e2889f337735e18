package deck_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func init() { programs["uncoverer"] = playUncoverer }

// playUncoverer moves the directories above our configuration away, one of them back again.
func playUncoverer([]string) int {
	home := os.Getenv("HOME")
	for _, name := range [][2]string{{".config", ".was"}, {".was", ".config"}, {".config", ".moved"}} {
		if err := os.Rename(filepath.Join(home, name[0]), filepath.Join(home, name[1])); err != nil {
			return 1
		}
	}
	return 0
}

// TestCoveredStaysCovered: what is masked in the jail is masked for the recorder that looks at what changed, after the
// program's end too.
func TestCoveredStaysCovered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config = filepath.Join(b.home, ".config", "tapedeck")
	const secret = "what only the recorder may know"
	put(t, filepath.Join(b.config, "mine"), secret)
	res, said := b.record("uncoverer")
	if res.Exit.Code != 0 {
		t.Fatalf("exit %+v: %s", res.Exit, said)
	}
	key, err := os.ReadFile(filepath.Join(b.home, ".moved", "tapedeck", "scrub.key"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(res.Recording.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, covered := range [][]byte{[]byte(secret), key, []byte("scrub.key")} {
			if bytes.Contains(content, covered) {
				t.Errorf("%s holds %q", path, covered)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
