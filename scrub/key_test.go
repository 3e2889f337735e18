package scrub_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

func TestLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tapedeck", "scrub.key")
	keys := make([]scrub.Key, 8)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = scrub.LoadKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] || k == (scrub.Key{}) {
			t.Fatalf("keys differ or are empty: %x", keys)
		}
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) != 1 {
		t.Errorf("left beside the key: %v, %v", names, err)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"empty": "", "short": "abcd", "long": strings.Repeat("ab", 33), "not hex": strings.Repeat("zz", 32), "odd": strings.Repeat("a", 63),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := scrub.LoadKey(path); !errors.Is(err, scrub.ErrKeyFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(open, []byte(strings.Repeat("ab", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scrub.LoadKey(open); err != nil {
		t.Errorf("a good key: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := scrub.LoadKey(open); !errors.Is(err, scrub.ErrKeyFile) {
		t.Errorf("a key that others can read: %v", err)
	}
	if _, err := scrub.LoadKey(filepath.Join(open, "below a file")); err == nil {
		t.Error("a key below a file")
	}
}
