//go:build unix

package overlay_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
)

const (
	killDir   = "TAPEDECK_TEST_WRITE_BACK"
	killFiles = 100
	killBytes = 64 << 10
)

func killName(i int) string { return fmt.Sprintf("d%d/f%d", i%7, i) }

// TestMain is the process that is killed, where it is told so.
func TestMain(m *testing.M) {
	dir := os.Getenv(killDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	f, err := overlay.New(&overlay.Options{Dir: dir})
	for i := 0; i < killFiles && err == nil; i++ {
		err = f.WriteFile(killName(i), bytes.Repeat([]byte{'n'}, killBytes), 0o644)
	}
	if err == nil {
		err = f.WriteBack()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestAKilledWriteBackLeavesEachFileOldOrNew kills it when it has written some files, a few more each time.
func TestAKilledWriteBackLeavesEachFileOldOrNew(t *testing.T) {
	between := 0
	for round := range 5 {
		dir := t.TempDir()
		for i := range killFiles {
			path := filepath.Join(dir, killName(i))
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, bytes.Repeat([]byte{'o'}, killBytes), 0o644))
		}
		killWriteBack(t, dir, round*killFiles/8)
		if n := countNew(t, dir); n > 0 && n < killFiles {
			between++
		}
	}
	if between == 0 {
		t.Error("no kill came in the middle of the writing")
	}
	t.Logf("%d of 5 came in the middle", between)
}

// killWriteBack has another process write back, and kills it once it has written the files of which the last is the nth in the order
// of their paths.
func killWriteBack(t *testing.T, dir string, n int) {
	t.Helper()
	names := make([]string, killFiles)
	for i := range names {
		names[i] = killName(i)
	}
	slices.Sort(names)
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), killDir+"="+dir)
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for path := filepath.Join(dir, names[n]); ; runtime.Gosched() {
		select {
		case err := <-ended:
			must(t, err)
			return
		default:
		}
		if first := make([]byte, 1); readFirst(path, first) == nil && first[0] == 'n' {
			_ = cmd.Process.Kill() // it may have ended
			<-ended
			return
		}
	}
}

func readFirst(path string, b []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(b)
	return err
}

// countNew checks that each file is the old or the new one, whole, and counts the new.
func countNew(t *testing.T, dir string) (n int) {
	t.Helper()
	for i := range killFiles {
		b, err := os.ReadFile(filepath.Join(dir, killName(i)))
		must(t, err)
		switch {
		case bytes.Equal(b, bytes.Repeat([]byte{'n'}, killBytes)):
			n++
		case !bytes.Equal(b, bytes.Repeat([]byte{'o'}, killBytes)):
			t.Fatalf("%s is neither the old nor the new one: %d bytes", killName(i), len(b))
		}
	}
	return n
}
