//go:build unix

package annotations_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
)

func TestASidecarIsAFile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, stand := range map[string]func(path string) error{
		"no regular file":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to nothing": func(path string) error { return os.Symlink(outside, path) },
	} {
		path := newTape(t, 3)
		if err := stand(path + annotations.Suffix); err != nil {
			t.Fatal(err)
		}
		note := &annotations.Annotation{EventID: 1, Kind: annotations.Note, Evidence: "e", Author: ada}
		if err := annotations.Append(path, "tapedeck test", note); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: appending says %v", name, err)
		}
		if _, err := annotations.Open(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: opening says %v", name, err)
		}
	}
	if _, err := os.Lstat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("where the link leads stands something now: %v", err)
	}
}
