//go:build unix

package testbench_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestLiveCommandsSideBySide has a command work on its copy of the files while another branch changes the run's: neither loses what the
// other did.
func TestLiveCommandsSideBySide(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	b := testbench.New(t, &testbench.Config{
		Clock: testbench.Clock{Real: true}, Processes: testbench.Processes{Live: true}, Env: map[string]string{"READY": ready},
	})
	if err := b.Files().WriteFile("old", []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := b.Parallel(context.Background(),
		func(ctx context.Context) error {
			return b.Processes().Command(ctx, "sh", "-c", "echo begun >$READY.1; while ! test -e $READY.2; do :; done; echo one >one").Run()
		},
		func(ctx context.Context) error {
			if err := b.Processes().Command(ctx, "sh", "-c", "while ! test -e $READY.1; do :; done; echo two >two; rm old").Run(); err != nil {
				return err
			}
			return errors.Join(b.Files().WriteFile("mine", nil, 0o644), os.WriteFile(ready+".2", nil, 0o600))
		})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"one": true, "two": true, "mine": true, "old": false} {
		if there, err := b.Files().Exists(name); err != nil || there != want {
			t.Errorf("%s: %v, %v", name, there, err)
		}
	}
}
