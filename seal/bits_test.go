package seal_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
)

// filesOf lists the regular files below dir.
func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// long is set where tests run in their long form: each bit of each byte, and not some bytes with one bit of each.
var long = os.Getenv("TAPEDECK_LONG") != ""

// TestEveryBit flips each bit of each file of a sealed recording, on a machine that knows the key and on one that does not.
func TestEveryBit(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	known := &seal.VerifyOptions{Keys: []seal.PublicKey{k.Public()}}
	bits := 0
	for _, path := range filesOf(t, dir) {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		for at := range whole {
			for bit := range 8 {
				if !long && (at%16 != 0 && at < len(whole)-4 || bit != at/16%8) {
					continue
				}
				bits++
				whole[at] ^= 1 << bit
				write(t, path, whole)
				for _, o := range []*seal.VerifyOptions{known, nil} {
					r, err := seal.Verify(context.Background(), dir, o)
					if err != nil || r.OK() {
						t.Errorf("bit %d of byte %d of %s: %v, nothing was found", bit, at, name, err)
					} else if !names(r.Problems, filepath.ToSlash(name)) {
						t.Errorf("bit %d of byte %d of %s: only %v", bit, at, name, r.Problems)
					}
				}
				whole[at] ^= 1 << bit
			}
		}
		write(t, path, whole)
	}
	if r := verify(t, dir, known); !r.OK() {
		t.Errorf("at the end: %v", r.Problems)
	}
	t.Logf("%d bits", bits)
}

// names reports whether a problem names a file, or the stream of it.
func names(problems []seal.Problem, name string) bool {
	for _, p := range problems {
		if p.Path == name || strings.HasPrefix(name, p.Path+"/") {
			return true
		}
	}
	return false
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
