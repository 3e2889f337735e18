package foreign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// longEntries is a HAR file with n entries whose answers are blobs.
func longEntries(n int) string {
	var all []string
	for i := range n {
		all = append(all, harGet("/"+strings.Repeat("x", i), `{"status":200,"headers":[],"content":{"size":1,"text":"`+strings.Repeat(string(rune('a'+i%26)), tape.InlineLimit+1+i)+`"}}`))
	}
	return harOf(all...)
}

// TestStopped stops an import in the middle: nothing is left, but for what was there before.
func TestStopped(t *testing.T) {
	path, dir := written(t, longEntries(40)), t.TempDir()
	out := filepath.Join(dir, "x.tape")
	store, err := cas.OpenDir(out+tape.StoreSuffix, nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := store.Put([]byte(strings.Repeat("a", tape.InlineLimit+1))) // that of the first entry too
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := &maker{ctx: &stopAfter{Context: ctx, left: 60, stop: cancel}, of: &har}
	if _, err := m.make(path, out); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if m.report.Exchanges == 0 || m.report.Exchanges == 40 {
		t.Fatalf("stopped after %d: the test stops nothing", m.report.Exchanges)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	blobs, err := os.ReadDir(out + tape.StoreSuffix)
	if err != nil || len(blobs) != 1 || blobs[0].Name() != mine.String() {
		t.Errorf("left of the blobs: %v, %v", blobs, err)
	}
	if _, err := har.Import(t.Context(), path, out, nil); err != nil {
		t.Errorf("the next import: %v", err)
	}
}

// stopAfter is a context that ends when it has been asked so often.
type stopAfter struct {
	context.Context
	left int
	stop func()
}

func (c *stopAfter) Err() error {
	if c.left--; c.left == 0 {
		c.stop()
	}
	return c.Context.Err()
}

// TestBlobNotWritten lets a blob's place be taken by something else: the import fails and leaves nothing of its own.
func TestBlobNotWritten(t *testing.T) {
	path, dir := written(t, longEntries(10)), t.TempDir()
	out := filepath.Join(dir, "x.tape")
	taken := cas.Sum([]byte(strings.Repeat("c", tape.InlineLimit+3))).String()
	if err := os.MkdirAll(filepath.Join(out+tape.StoreSuffix, taken), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := har.Import(t.Context(), path, out, nil); err == nil {
		t.Fatal("no error")
	}
	if left, _ := os.ReadDir(out + tape.StoreSuffix); len(left) != 1 || left[0].Name() != taken {
		t.Errorf("left of the blobs: %v", left)
	}
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a tape: %v", err)
	}
}
