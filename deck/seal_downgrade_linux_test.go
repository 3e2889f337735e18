package deck_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// TestSealTakenBack: a recording whose recording.json was made to say that it is not sealed does not hold for who asks for a key,
// whether its seal was left there (which looks like an interrupted sealing) or taken away.
func TestSealTakenBack(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	for _, steps := range []int{2, 3} {
		res, _ := b.recordOutside("errand")
		dir := res.Recording.Dir
		interruptedSeal(t, dir, steps)
		if err := os.RemoveAll(filepath.Join(dir, ".tmp-seal-123")); err != nil {
			t.Fatal(err)
		}
		keys, err := sealing.TrustedKeys(b.config)
		if err != nil || len(keys) == 0 {
			t.Fatal(keys, err)
		}
		v, err := verify.Verify(context.Background(), dir, &verify.Options{ConfigDir: b.config, Keys: keys})
		if err != nil || len(v.Problems) != 1 || v.Problems[0].Code != string(seal.CodeMissing) {
			t.Errorf("%d steps: %+v, %v", steps, v, err)
		}
	}
}

// TestVerifyWithoutATape: where there is no tape any more, or something else in its place, that is what does not hold.
func TestVerifyWithoutATape(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	for name, put := range map[string]func(string) error{
		"nothing":     func(string) error { return nil },
		"a FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":      func(path string) error { return os.Symlink("nowhere", path) },
	} {
		for _, unsealed := range []bool{false, true} {
			b.unsealed = unsealed
			res, _ := b.recordOutside("errand")
			path := res.Recording.TapePath()
			if err := errors.Join(os.Remove(path), put(path)); err != nil {
				t.Fatal(err)
			}
			v, err := verify.Verify(context.Background(), res.Recording.Dir, &verify.Options{ConfigDir: b.config})
			if err != nil || len(v.Problems) != 1 || v.Problems[0].Path != path {
				t.Errorf("%s, unsealed %t: %+v, %v", name, unsealed, v, err)
			}
		}
	}
}
