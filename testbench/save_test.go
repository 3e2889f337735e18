package testbench_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// slept returns a run that slept for d.
func slept(t *testing.T, d time.Duration) *testbench.Bench {
	t.Helper()
	b := testbench.New(t, &testbench.Config{Name: "agent"})
	if err := b.Clock().Sleep(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSaveReplacesATapeWhole has somebody read a tape all the time while it is replaced: what they find is what a kill would leave.
func TestSaveReplacesATapeWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden.tape")
	runs := []*testbench.Bench{slept(t, time.Second), slept(t, time.Hour)}
	whole := make(map[string]bool)
	for _, b := range runs {
		if err := b.Save(path); err != nil {
			t.Fatal(err)
		}
		whole[readAll(t, path)] = true
	}
	stop, seen := make(chan struct{}), make(chan string, 1)
	go func() { // ends with stop
		defer close(seen)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if b, err := os.ReadFile(path); err != nil || !whole[string(b)] {
				seen <- string(b)
				return
			}
		}
	}()
	for i := range 300 {
		if err := runs[i%2].Save(path); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if text, half := <-seen; half {
		t.Errorf("in between it was %q", text)
	}
}

// TestAFailedSaveLeavesTheOldTape breaks the second of two, whose payload has no place, and looks at the first.
func TestAFailedSaveLeavesTheOldTape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden.tape")
	if err := slept(t, time.Second).Save(path); err != nil {
		t.Fatal(err)
	}
	old := readAll(t, path)
	asked := asks(t, "why?")
	for d, err := range asked.Store().All() {
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(path+tape.StoreSuffix, d.String()), 0o700); err != nil { // where a file is to be
			t.Fatal(err)
		}
	}
	if err := asked.Save(path); err == nil {
		t.Error("the payload was written nowhere, without an error")
	}
	if got := readAll(t, path); got != old {
		t.Errorf("the tape is now %q", got)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSaveThroughALink replaces what the link leads to, and takes away the payloads that nobody names any more.
func TestSaveThroughALink(t *testing.T) {
	dir := t.TempDir()
	path, real := filepath.Join(dir, "golden.tape"), filepath.Join(dir, "real.tape")
	if err := os.WriteFile(real, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, path); err != nil {
		t.Skip(err)
	}
	if err := asks(t, "why?").Save(path); err != nil {
		t.Fatal(err)
	}
	if blobs, err := os.ReadDir(path + tape.StoreSuffix); err != nil || len(blobs) == 0 || !strings.Contains(readAll(t, real), "llm_call") {
		t.Errorf("%v, %v", blobs, err)
	}
	if err := slept(t, time.Second).Save(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path + tape.StoreSuffix); !os.IsNotExist(err) {
		t.Errorf("the payloads are left: %v", err)
	}
	if st, err := os.Lstat(path); err != nil || st.Mode().IsRegular() {
		t.Errorf("the link is gone: %v", err)
	}
}
