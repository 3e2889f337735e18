//go:build unix

package foreign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// TestNoRegularFile: a FIFO, which nobody writes to, and a device without end are refused by every importer, and where they lie among
// the files of a session.
func TestNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "session.jsonl")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	refused := func(path string, im *Importer) {
		t.Helper()
		_, err := im.Import(context.Background(), path, func(sessionlog.Event) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "regular file") {
			t.Errorf("%s of %s: %v", im.Name(), path, err)
		}
	}
	for _, im := range importers {
		refused(fifo, im)
		refused("/dev/zero", im)
	}
	if _, err := Detect(fifo); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Error(err)
	}
	storage := filepath.Join(dir, "storage")
	if err := os.CopyFS(storage, os.DirFS("testdata/opencode/storage")); err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob(filepath.Join(storage, "part", "*", "*.json"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	for _, put := range []func(string) error{
		func(path string) error { return syscall.Mkfifo(path, 0o600) },
		func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		for _, part := range parts { // some are of other sessions
			if err := errors.Join(os.Remove(part), put(part)); err != nil {
				t.Fatal(err)
			}
		}
		refused(storage, &opencode)
	}
}
