package files

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledSnapshot kills a snapshot in the middle and checks that every blob in the store is whole.
func TestKilledSnapshot(t *testing.T) {
	if dir := os.Getenv("FILES_TEST_KILL"); dir != "" {
		snapAndSay(t, dir)
		return
	}
	dir := t.TempDir()
	m := model{}
	for i := range 1000 {
		m[fmt.Sprintf("d%d/f%d", i%7, i)] = strings.Repeat(fmt.Sprintln(i), 2000)
	}
	m.build(t, filepath.Join(dir, "tree"))
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledSnapshot$")
	cmd.Env = append(os.Environ(), "FILES_TEST_KILL="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	must(t, cmd.Process.Kill())
	if cmd.Wait() == nil {
		t.Fatal("the snapshot ended before it was killed")
	}
	store, n := openStore(t, filepath.Join(dir, "store")), 0
	for d, err := range store.All() {
		must(t, err)
		if _, err := store.Get(d); err != nil {
			t.Error(err)
		}
		n++
	}
	if n == 0 || n >= len(m) {
		t.Errorf("%d of %d blobs", n, len(m))
	}
	if _, err := os.Stat(filepath.Join(dir, "cache")); err == nil {
		t.Error("a snapshot that was killed left a cache")
	}
}

// snapAndSay takes the snapshot in the process that is killed, and says when it is under way. The last Progress waits for
// the end, so that the killer never comes too late.
func snapAndSay(t *testing.T, dir string) {
	said := false
	snap(t, filepath.Join(dir, "tree"), &SnapOptions{
		Store: openStore(t, filepath.Join(dir, "store")), CachePath: filepath.Join(dir, "cache"),
		Progress: func(files int, _ int64) {
			if !said {
				said = true
				fmt.Println("under way")
			}
			if files > 2500 {
				select {}
			}
		},
	})
}
