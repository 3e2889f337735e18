package deck_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// interruptedSeal brings a sealed recording to what a recorder that is killed leaves when it has done so many of the steps of
// sealing: 0 nothing, 1 a directory of its own, 2 the tiles, 3 seal.json.
func interruptedSeal(t *testing.T, dir string, steps int) {
	t.Helper()
	manifest := filepath.Join(dir, "recording.json")
	b, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(manifest, bytes.Replace(b, []byte(`"sealed": true`), []byte(`"sealed": false`), 1), 0o644)
	if steps < 3 {
		err = errors.Join(err, os.Remove(filepath.Join(dir, "seal.json")))
	}
	if steps < 2 {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, "seal.tiles")))
	}
	if steps > 0 {
		temp := filepath.Join(dir, ".tmp-seal-123", "seal.tiles")
		err = errors.Join(err, os.MkdirAll(temp, 0o700), os.WriteFile(filepath.Join(temp, "run.tape.0"), []byte("half"), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestInterruptedSeals: whatever step of sealing a recorder was killed at, its recording says that it is unsealed, holds, and can be
// sealed; and what was changed since is not taken for it.
func TestInterruptedSeals(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	if err := os.WriteFile(filepath.Join(b.dir, "in.txt"), []byte("in\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(dir string) *verify.Verification {
		t.Helper()
		v, err := verify.Verify(context.Background(), dir, &verify.Options{ConfigDir: b.config})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for steps := range 4 {
		res, _ := b.recordOutside("errand")
		dir := res.Recording.Dir
		interruptedSeal(t, dir, steps)
		if v := check(dir); v.State != verify.StateUnsealed || len(v.Problems) > 0 {
			t.Errorf("%d steps: %+v", steps, v)
		}
		rec, err := recording.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sealing.Seal(context.Background(), rec, &sealing.Options{ConfigDir: b.config})
		if err != nil || s.Already {
			t.Fatalf("%d steps: %+v, %v", steps, s, err)
		}
		if v := check(dir); v.State != verify.StateSealed || len(v.Problems) > 0 {
			t.Errorf("%d steps, sealed then: %+v", steps, v)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".tmp-*")); len(left) > 0 {
			t.Errorf("%d steps: left over: %v", steps, left)
		}
	}
	// Killed behind the last step: the directory is there, and empty.
	done, _ := b.recordOutside("errand")
	if err := os.Mkdir(filepath.Join(done.Recording.Dir, ".tmp-seal-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if v := check(done.Recording.Dir); v.State != verify.StateSealed || len(v.Problems) > 0 {
		t.Errorf("behind the last step: %+v", v)
	}
	// An edited recording that is made to look like one whose sealing was interrupted gets no new seal.
	res, _ := b.recordOutside("errand")
	dir := res.Recording.Dir
	interruptedSeal(t, dir, 3)
	if err := os.RemoveAll(filepath.Join(dir, ".tmp-seal-123")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "workspace.diff"), []byte("nothing"), 0o644); err != nil {
		t.Fatal(err)
	}
	if v := check(dir); len(v.Problems) == 0 || !strings.Contains(v.Problems[0].Path, "workspace.diff") {
		t.Errorf("%+v", v)
	}
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealing.Seal(context.Background(), rec, &sealing.Options{ConfigDir: b.config}); !errors.Is(err, sealing.ErrSealBroken) {
		t.Errorf("%v", err)
	}
}

// TestSealsThatCannotBe: a recording whose sealing fails is there all the same, and is sealed once that is mended; one that is not
// finished is not sealed at all.
func TestSealsThatCannotBe(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	for name, c := range map[string]struct {
		breaks func() error
		mends  func() error
		want   error
	}{
		"lost": {
			func() error { return os.Rename(filepath.Join(b.config, "seal.key"), filepath.Join(b.config, "kept")) },
			func() error { return os.Rename(filepath.Join(b.config, "kept"), filepath.Join(b.config, "seal.key")) }, seal.ErrKeyLost,
		},
		"open": {
			func() error { return os.Chmod(filepath.Join(b.config, "seal.key"), 0o644) },
			func() error { return os.Chmod(filepath.Join(b.config, "seal.key"), 0o600) }, seal.ErrKeyFile,
		},
	} {
		if res, _ := b.recordOutside("errand"); res.NotSealed != nil { // makes the key
			t.Fatal(res.NotSealed)
		}
		if err := c.breaks(); err != nil {
			t.Fatal(err)
		}
		res, _ := b.recordOutside("errand")
		if !errors.Is(res.NotSealed, c.want) || res.Sealed != nil {
			t.Errorf("%s: %v", name, res.NotSealed)
		}
		if v, err := verified(res.Recording.Dir); err != nil || v.State != verify.StateUnsealed || len(v.Problems) > 0 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if err := c.mends(); err != nil {
			t.Fatal(err)
		}
		if _, err := sealing.Seal(context.Background(), res.Recording, &sealing.Options{ConfigDir: b.config}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.unsealed = true
	res, _ := b.recordOutside("errand")
	res.Recording.Manifest.State = recording.StateRecording
	writeManifest(t, res.Recording)
	if _, err := sealing.Seal(context.Background(), res.Recording, &sealing.Options{ConfigDir: b.config}); !errors.Is(err, seal.ErrCannotSeal) {
		t.Errorf("unfinished: %v", err)
	}
}

// TestTheKeyThatIsMadeIsNoChange: where a configuration lies in the work tree, the sealing key is made behind the last look at that.
func TestTheKeyThatIsMadeIsNoChange(t *testing.T) {
	b := newBenchAnywhere(t)
	b.config = filepath.Join(b.dir, "config")
	res, err := deck.Record(t.Context(), &deck.RecordOptions{
		Argv: []string{"/bin/sh", "-c", "sleep 0.05"}, Env: b.env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Proxy: true,
		Streams: deck.Streams{Stdout: io.Discard, Stderr: io.Discard},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds(t, res.Recording) {
		if w, ok := k.(*tape.FileWrite); ok {
			t.Errorf("the program wrote %s", w.Path)
		}
	}
}
