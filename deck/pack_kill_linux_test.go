package deck_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func init() { programs["packer"] = playPacker }

// playPacker packs the recording args[0] as args[1], to be killed meanwhile.
func playPacker(args []string) int {
	rec, err := recording.Open(args[0])
	if err != nil {
		return fail(err)
	}
	fmt.Println("begin")
	if _, err := library.Pack(context.Background(), rec, args[1], nil); err != nil {
		return fail(err)
	}
	return 0
}

// TestPackAfterAKilledPack kills packers at any moment: what they leave beside FILE goes with the next one.
func TestPackAfterAKilledPack(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "a.rec"), "id", "finished", 300)
	dir := t.TempDir()
	file := filepath.Join(dir, "packed")
	halves := 0
	rounds := 4
	if long {
		rounds = 40
	}
	for round := 0; round < rounds || halves == 0 && round < 100; round++ {
		cmd := exec.Command(os.Args[0], c.dir, file)
		cmd.Env = append(os.Environ(), programVar+"=packer")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadString('\n')
		if round%2 == 0 { // killed while it writes, where that is seen before it is done
			for half := []string(nil); half == nil; half, _ = filepath.Glob(filepath.Join(dir, ".tmp-*")) {
				if _, err := os.Stat(file); err == nil {
					break
				}
			}
		} else {
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		half, _ := filepath.Glob(filepath.Join(dir, ".tmp-*"))
		halves += len(half)
		os.Remove(file)
		if _, err := library.Pack(context.Background(), c.open(t), file, nil); err != nil {
			t.Fatal(err)
		}
		if names := namesIn(t, dir); len(names) != 1 {
			t.Fatalf("round %d: beside the packed recording lies %q", round, names)
		}
	}
	if halves == 0 {
		t.Error("no packer was killed while it wrote")
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
