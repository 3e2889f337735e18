package deck_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/verify"
)

func init() { programs["sealed"] = playSealed }

// playSealed has one of each thing that a recording of a program without a terminal holds.
func playSealed(args []string) int {
	if err := os.WriteFile("made.txt", []byte("made\n"), 0o644); err != nil {
		return fail(err)
	}
	return send(args[0], "what to do")
}

// TestEveryBitIsSealed flips bits of a sealed recording, one at a time, of all files: verify finds each, and nothing where only
// people's notes change. TAPEDECK_LONG flips every bit there is, else a share of each byte's.
func TestEveryBitIsSealed(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"answer":"done"}`) })
	if err := os.WriteFile(filepath.Join(b.dir, "in.txt"), []byte("in\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	res, _ := b.recordOutside("sealed", "http://api.example.com/v1")
	if res.NotSealed != nil || res.Sealed == nil {
		t.Fatal(res.NotSealed)
	}
	dir := res.Recording.Dir
	check := func() *verify.Verification {
		v, err := verify.Verify(context.Background(), dir, &verify.Options{ConfigDir: b.config})
		if err != nil {
			return &verify.Verification{Problems: []verify.Problem{{Message: err.Error()}}} // that is found, too
		}
		return v
	}
	if v := check(); len(v.Problems) > 0 || v.State != verify.StateSealed || !v.SignerKnown {
		t.Fatalf("%+v", v)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.tape.annotations.jsonl"), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if v := check(); len(v.Problems) > 0 {
		t.Fatalf("notes are within the seal: %v", v.Problems)
	}
	share := 97 // one of so many bits
	if os.Getenv("TAPEDECK_LONG") != "" {
		share = 1
	}
	begun, bits, files := time.Now(), 0, 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "run.tape.annotations.jsonl" {
			return err
		}
		files++
		n, err := flipBits(t, path, share, func() bool { return len(check().Problems) > 0 })
		bits += n
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bits of %d files, %v", bits, files, time.Since(begun))
	if v := check(); len(v.Problems) > 0 || bits == 0 {
		t.Errorf("%d bits; after all of them: %v", bits, v.Problems)
	}
}

// flipBits flips one of share bits of a file, one at a time, and says how many it were.
func flipBits(t *testing.T, path string, share int, found func() bool) (n int, err error) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for i := rand.IntN(share); i < len(b)*8; i += share {
		b[i/8] ^= 1 << (i % 8)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return n, err
		}
		if !found() {
			t.Errorf("%s: bit %d of byte %d was flipped, and nothing was found", filepath.Base(path), i%8, i/8)
		}
		b[i/8] ^= 1 << (i % 8)
		n++
	}
	return n, os.WriteFile(path, b, 0o644)
}
