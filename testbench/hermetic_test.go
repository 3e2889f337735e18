package testbench_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestZeroConfigReachesNothing asks every axis of a bench that was given nothing: no key, no file, no program and no variable of the
// host is seen.
func TestZeroConfigReachesNothing(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "of-the-host")
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("host.txt", []byte("of the host"), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := testbench.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()

	var noModel *fixture.DeniedError
	if _, err := b.Model().Complete(ctx, &fixture.Request{Model: "claude", Messages: "x"}); !errors.As(err, &noModel) {
		t.Errorf("model: %v", err)
	}
	var noCommand *process.DeniedError
	if err := b.Processes().Command(ctx, "touch", filepath.Join(dir, "made")).Run(); !errors.As(err, &noCommand) {
		t.Errorf("command: %v", err)
	}
	var noNet *roundtrip.DeniedError
	if _, err := b.Client().Get("http://127.0.0.1:1/"); !errors.As(err, &noNet) {
		t.Errorf("network: %v", err)
	}
	if _, ok := b.Getenv("ANTHROPIC_API_KEY"); ok {
		t.Error("a variable of the host is seen")
	}
	if all := b.Environ(); len(all) != 0 {
		t.Errorf("environment %q", all)
	}
	for _, name := range []string{"host.txt", "../" + filepath.Base(dir) + "/host.txt", filepath.Join(dir, "host.txt"), "/etc/passwd"} {
		if _, err := b.Files().ReadFile(name); err == nil {
			t.Errorf("the host's %s is read", name)
		}
	}
	if names, err := b.Files().List("."); err != nil || len(names) != 0 {
		t.Errorf("the tree holds %q, %v", names, err)
	}
	if err := b.Files().WriteFile("new.txt", []byte("x"), 0o644); err != nil {
		t.Error(err)
	}
	if now := b.Clock().Now(); !now.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("it is %s", now)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if names := namesIn(t, dir); len(names) != 1 {
		t.Errorf("the host's directory holds %q", names)
	}
	if rec := b.Recorder(); rec.Enabled() {
		t.Error("a tape is written that nobody asked for")
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if path != "." {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestFilesAreNeverWrittenInPlace changes files of a directory, which stays as it is until it is asked for.
func TestFilesAreNeverWrittenInPlace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := testbench.New(t, &testbench.Config{Files: testbench.Files{Dir: dir}})
	if err := b.Files().WriteFile("a.txt", []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.Files().WriteFile("b.txt", []byte("new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, file); got != "old\n" {
		t.Errorf("a.txt is %q", got)
	}
	if names := namesIn(t, dir); len(names) != 1 {
		t.Errorf("the directory holds %q", names)
	}
}

// TestInABubble has a bench in a bubble of testing/synctest: paused, where time is the bench's own, and real, where it is the bubble's.
func TestInABubble(t *testing.T) {
	for name, real := range map[string]bool{"paused": false, "real": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := testbench.New(t, &testbench.Config{Clock: testbench.Clock{Real: real}, Emit: filepath.Join(t.TempDir(), "run.tape")})
				ctx := context.Background()
				begun := time.Now()
				results := make(chan int, 3)
				err := b.Parallel(ctx,
					func(ctx context.Context) error {
						defer func() { results <- 0 }()
						return b.Clock().Sleep(ctx, 3*time.Hour)
					},
					func(ctx context.Context) error {
						defer func() { results <- 1 }()
						return b.Clock().Sleep(ctx, time.Hour)
					},
				)
				if err != nil {
					t.Fatal(err)
				}
				if first, second := <-results, <-results; first != 1 || second != 0 {
					t.Errorf("they ended as %d, %d", first, second)
				}
				_, ms := b.Clock().Stamp()
				if want := (3 * time.Hour).Milliseconds(); ms != want {
					t.Errorf("%d ms went by, want %d", ms, want)
				}
				if passed := time.Since(begun); (passed > 0) != real {
					t.Errorf("%s of the bubble went by", passed)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
