package deck_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// A work tree that no library can be made in is recorded to elsewhere all the same.
func TestRecordElsewhereWithoutALibrary(t *testing.T) {
	t.Parallel()
	for _, proxy := range []bool{false, true} {
		b := newBenchAnywhere(t)
		if !proxy {
			b = newBench(t)
		}
		// Root may write anywhere: a file in the library's place keeps it out, too.
		if err := os.WriteFile(filepath.Join(b.dir, ".tapedeck"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		argv, env := b.self("errand")
		var out, log bytes.Buffer
		o := &deck.RecordOptions{
			Argv: argv, Env: env, Dir: b.dir, ConfigDir: b.config, Proxy: proxy, Output: filepath.Join(t.TempDir(), "out"),
			Streams: deck.Streams{Stdout: &out, Stderr: &out}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}
		res, err := deck.Record(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "known by its path alone") {
			t.Errorf("%d lines of log: %s", n, &log)
		}
		if v, err := verified(res.Recording.Dir); err != nil || len(v.Problems) > 0 {
			t.Errorf("%+v, %v", v, err)
		}
		o.Output = "" // there is no other place then
		if _, err := deck.Record(context.Background(), o); err == nil {
			t.Error("recorded into a library that cannot be")
		}
	}
}

// What somebody put into the place of the stat cache is neither waited for nor followed, read or replaced.
func TestRecordWithoutAStatCache(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":      func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBenchAnywhere(t)
			lib := filepath.Join(b.dir, ".tapedeck")
			cache := filepath.Join(lib, "statcache")
			if err := errors.Join(os.Mkdir(lib, 0o700), put(cache)); err != nil {
				t.Fatal(err)
			}
			was, _ := os.Lstat(cache)
			argv, env := b.self("errand")
			var log bytes.Buffer
			_, err := deck.Record(context.Background(), &deck.RecordOptions{
				Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Proxy: true,
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "no regular file") {
				t.Errorf("%d lines of log: %s", n, &log)
			}
			if is, err := os.Lstat(cache); err != nil || !os.SameFile(was, is) {
				t.Errorf("it was replaced: %v, %v", is, err)
			}
		})
	}
}
