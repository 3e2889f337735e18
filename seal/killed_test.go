package seal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/seal"
)

// The test program, started again, seals the recording that this names, over and over, by the key beside it.
const sealsAgain = "TAPEDECK_TEST_SEALS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(sealsAgain); dir != "" {
		fmt.Println(sealForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func sealForever(dir string) error {
	for {
		k, err := seal.LoadKey(filepath.Join(dir, "..", "keys"))
		if err != nil {
			return err
		}
		if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k, Replace: true}); err != nil {
			return err
		}
	}
}

// TestKilled kills who seals at moments that nobody chose.
func TestKilled(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "rec")
	if err := os.Rename(small(t), dir); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"terminal/service-events.jsonl": strings.Repeat(strings.Repeat("x", 99)+"\n", 40_000)})
	rounds := 4
	if long {
		rounds = 60
	}
	without, leftovers := 0, 0
	for range rounds {
		kill(t, dir, time.Duration(rand.IntN(60_000))*time.Microsecond)
		temporary, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := seal.Verify(context.Background(), dir, nil)
		switch {
		case errors.Is(err, seal.ErrNoSeal):
			without++
		case err != nil:
			t.Fatal(err)
		default:
			for _, p := range r.Problems {
				if !strings.HasPrefix(p.Path, ".tmp-seal-") || p.Code != seal.CodeUnlisted || len(r.Problems) > 1 {
					t.Errorf("half a seal: %v", &p)
				}
			}
		}
		leftovers += len(temporary)
		k, err := seal.LoadKey(filepath.Join(base, "keys"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := seal.Seal(context.Background(), dir, &seal.Options{Key: k, Replace: true}); err != nil {
			t.Fatalf("it cannot be sealed again: %v", err)
		}
		if r := verify(t, dir, &seal.VerifyOptions{Keys: []seal.PublicKey{k.Public()}}); !r.OK() {
			t.Fatalf("%v", r.Problems)
		}
		if rand.IntN(2) == 0 { // the next one begins without a seal, or without keys
			remove("seal.json")(t, dir)
		}
		if rand.IntN(4) == 0 {
			remove("../keys")(t, dir)
		}
	}
	t.Logf("%d kills: %d left no seal, %d a temporary directory", rounds, without, leftovers)
}

// kill starts somebody who seals and kills him after a while.
func kill(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sealsAgain+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	said := make([]byte, 1000)
	if n, _ := out.Read(said); n > 0 {
		t.Errorf("it could not seal: %s", said[:n])
	}
	_ = cmd.Wait() // killed
}
