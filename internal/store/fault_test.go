package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// pick chooses the long form of a test where TAPEDECK_LONG is set.
func pick(short, long int) int {
	if os.Getenv("TAPEDECK_LONG") != "" {
		return long
	}
	return short
}

func begin(t testing.TB, s store.Store, run string) runtrace.ID {
	t.Helper()
	id := runtrace.ID{Agent: "a", Run: run}
	if _, err := s.Start(context.Background(), &runtrace.Started{RunID: run, AgentID: "a", Intent: "to break"}); err != nil {
		t.Fatal(err)
	}
	return id
}

func say(s store.Store, id runtrace.ID, texts ...string) (int, error) {
	turns := make([]runtrace.Turn, len(texts))
	for i := range texts {
		turns[i].Prompt = &texts[i]
	}
	return s.Append(context.Background(), id, turns)
}

// prompts checks that a run's indices are 0, 1, … and returns what its turns say, in order.
func prompts(t testing.TB, s store.Store, id runtrace.ID) (texts []string) {
	t.Helper()
	tr, err := s.Trace(context.Background(), id, nil)
	if err != nil {
		t.Fatalf("trace of %s: %v", id, err)
	}
	for i, line := range tr.Records {
		r, err := runtrace.Parse(line)
		switch {
		case err != nil:
			t.Fatalf("%s: %v", line, err)
		case i == 0 && (r.Started == nil || r.Started.ID() != id):
			t.Fatalf("%s begins with %s", id, line)
		case r.Turn != nil && r.Turn.Index != i-1:
			t.Fatalf("record %d of %s is %s", i, id, line)
		case r.Turn != nil:
			texts = append(texts, *r.Turn.Prompt)
		case r.Ended != nil && i != len(tr.Records)-1:
			t.Fatalf("%s goes on after %s", id, line)
		}
	}
	return texts
}

func equal(t testing.TB, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %d turns %.200q\nwant %d %.200q", len(got), got, len(want), want)
	}
}

// A switchable fails calls while it is on.
type switchable struct {
	faultfs.Hook
	fails atomic.Pointer[func(*faultfs.Call) error]
}

func faulty(inner faultfs.FS) *switchable {
	f := &switchable{}
	f.Inner = inner
	f.Before = func(c *faultfs.Call) error {
		if fails := f.fails.Load(); fails != nil {
			return (*fails)(c)
		}
		return nil
	}
	return f
}

func (f *switchable) on(op faultfs.Op, suffix string, keep int, err error) {
	fails := func(c *faultfs.Call) error {
		if c.Op == op && strings.HasSuffix(c.Name, suffix) {
			c.Keep = min(keep, c.Size)
			return err
		}
		return nil
	}
	f.fails.Store(&fails)
}

func (f *switchable) off() { f.fails.Store(nil) }

// A failed fsync acknowledges nothing any more; opened again, what was acknowledged is there.
func TestFailedSync(t *testing.T) {
	dir := t.TempDir()
	disk := faultfs.NewMemory()
	fs := faulty(disk)
	s := openDisk(t, dir, &store.Options{FS: fs})
	id := begin(t, s, "r")
	if _, err := say(s, id, "one"); err != nil {
		t.Fatal(err)
	}
	fs.on(faultfs.OpSync, ".seg", 0, syscall.EIO)
	if _, err := say(s, id, "two"); !errors.Is(err, seglog.ErrFailed) || !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	fs.off()
	for range 2 {
		if _, err := say(s, id, "three"); !errors.Is(err, seglog.ErrFailed) {
			t.Errorf("after it: %v", err)
		}
	}
	if err := s.Health(); !errors.Is(err, seglog.ErrFailed) {
		t.Errorf("health: %v", err)
	}
	equal(t, prompts(t, s, id), []string{"one"})
	if sum, err := s.Find(t.Context(), "r"); err != nil || sum.Turns != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
	if err := s.Close(t.Context()); err == nil {
		t.Error("closed as if nothing had been")
	}
	again := openDisk(t, dir, &store.Options{FS: disk.PowerCut(rand.New(rand.NewPCG(1, 1)))})
	got := prompts(t, again, id)
	if len(got) == 0 || got[0] != "one" || len(got) == 2 && got[1] != "two" || len(got) > 2 {
		t.Errorf("opened again: %q", got)
	}
	if sum, err := again.Find(t.Context(), "r"); err != nil || sum.Status != runtrace.Incomplete {
		t.Errorf("%+v, %v", sum, err)
	}
	if _, err := say(again, begin(t, again, "s"), "on"); err != nil {
		t.Error(err)
	}
}

// The disk is full for a while, for the log or for run files, with a part of each write done: what was refused does not appear,
// or is followed by what comes next, and no index is left out or given twice.
func TestFullDisk(t *testing.T) {
	for _, suffix := range []string{".seg", ".jsonl"} {
		t.Run(suffix, func(t *testing.T) {
			dir := t.TempDir()
			fs := faulty(faultfs.NewMemory())
			s := openDisk(t, dir, &store.Options{FS: fs, Segment: 64 << 10})
			ids := []runtrace.ID{begin(t, s, "r0"), begin(t, s, "r1"), begin(t, s, "r2")}
			acked := make([][]string, len(ids))
			all := func(phase string, n int) (failed int64) {
				var group sync.WaitGroup
				var count atomic.Int64
				for i, id := range ids {
					group.Go(func() {
						for k := range n {
							text := fmt.Sprint(phase, k)
							if base, err := say(s, id, text, text+"b"); err != nil {
								count.Add(1)
							} else if acked[i] = append(acked[i], fmt.Sprint(base, text), fmt.Sprint(base+1, text+"b")); base < 0 {
								t.Error(base)
							}
						}
					})
				}
				group.Wait()
				return count.Load()
			}
			if n := all("before", 20); n != 0 {
				t.Fatalf("%d failed before the disk was full", n)
			}
			fs.on(faultfs.OpWrite, suffix, 7, syscall.ENOSPC)
			if n := all("full", 20); n != 60 {
				t.Errorf("%d of 60 failed", n)
			}
			if _, err := s.Start(t.Context(), &runtrace.Started{RunID: "late", AgentID: "a"}); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("start: %v", err)
			}
			if _, err := say(s, ids[0], "x"); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got %v", err)
			}
			fs.off()
			if n := all("after", 20); n != 0 {
				t.Errorf("%d failed when there was space again", n)
			}
			if _, err := s.Start(t.Context(), &runtrace.Started{RunID: "late", AgentID: "a"}); err != nil {
				t.Error(err)
			}
			if err := s.Health(); err != nil {
				t.Error(err)
			}
			check := func(s *store.Disk) {
				for i, id := range ids {
					at := 0
					for n, text := range prompts(t, s, id) {
						if at < len(acked[i]) && acked[i][at] == fmt.Sprint(n, text) {
							at++
						} else if suffix == ".seg" || !strings.HasPrefix(text, "full") {
							t.Errorf("turn %d of %s is %q, which nobody was told is there", n, id, text)
						}
					}
					if at != len(acked[i]) {
						t.Errorf("%s has %d of %d acknowledged turns", id, at, len(acked[i]))
					}
				}
			}
			check(s)
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			check(openDisk(t, dir, &store.Options{FS: fs}))
		})
	}
}

// A verdict that failed with a full disk is in the log before the turn that follows.
func TestVerdictOnAFullDisk(t *testing.T) {
	fs := faulty(faultfs.NewMemory())
	s := openDisk(t, t.TempDir(), &store.Options{FS: fs})
	id := begin(t, s, "r")
	fs.on(faultfs.OpWrite, ".seg", 0, syscall.ENOSPC)
	if err := s.Verdict(t.Context(), id, []byte(`"allowed"`)); err != nil {
		t.Fatal(err)
	}
	if _, err := say(s, id, "one"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	fs.off()
	if all, err := s.Verdicts(t.Context(), id); err != nil || len(all) != 0 {
		t.Errorf("%s, %v", all, err)
	}
	if _, err := say(s, id, "one"); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Verdicts(t.Context(), id); err != nil || len(all) != 1 {
		t.Errorf("%s, %v", all, err)
	}
	equal(t, prompts(t, s, id), []string{"one"})
}

// The power fails under writers of many runs: each acknowledged turn is there, once, in order.
func TestPowerCut(t *testing.T) {
	for seed := range uint64(pick(10, 300)) {
		dir := t.TempDir()
		disk := faultfs.NewMemory()
		s := openDisk(t, dir, &store.Options{FS: disk, Segment: 8 << 10, IndexEvery: 1e6})
		const runs = 8
		var acked [runs]atomic.Int64
		ctx, stop := context.WithCancel(context.Background())
		var group sync.WaitGroup
		for i := range runs {
			id := begin(t, s, fmt.Sprint("r", i))
			group.Go(func() {
				for k := 0; ctx.Err() == nil && k < 1900; k++ {
					if _, err := say(s, id, fmt.Sprint(i, "/", k)); err == nil {
						acked[i].Store(int64(k + 1))
					}
				}
			})
		}
		r := rand.New(rand.NewPCG(seed, 2))
		for acked[0].Load() < r.Int64N(150) {
		}
		var before [runs]int64
		for i := range before {
			before[i] = acked[i].Load()
		}
		cut := disk.PowerCut(r)
		image := t.TempDir() // the index as it stands now, or a moment later: it is made to be behind or ahead
		copyIndex(t, dir, image)
		stop()
		group.Wait()
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		moved := &renamed{FS: cut, from: image, to: dir}
		again := openDisk(t, image, &store.Options{FS: moved})
		repaired := again.Stats().Repairs
		for i := range runs {
			id := runtrace.ID{Agent: "a", Run: fmt.Sprint("r", i)}
			got := prompts(t, again, id)
			if int64(len(got)) < before[i] {
				t.Fatalf("seed %d: %s has %d turns, %d were acknowledged", seed, id, len(got), before[i])
			}
			for k, text := range got {
				if text != fmt.Sprint(i, "/", k) {
					t.Fatalf("seed %d: turn %d of %s is %q", seed, k, id, text)
				}
			}
			if sum, err := again.Find(t.Context(), id.Run); err != nil || sum.Turns != len(got) || sum.Status != runtrace.Incomplete {
				t.Fatalf("seed %d: %+v, %v", seed, sum, err)
			}
		}
		if n := again.Stats().Repairs; n != repaired {
			t.Errorf("seed %d: %d files were not what they should be when they were read", seed, n-repaired)
		}
		if err := again.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// copyIndex copies the index as no checkpoint cut it in two: what stood in the log before is there after, or it looks again.
func copyIndex(t *testing.T, from, to string) {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return b
	}
	const db, log = "index.sqlite", "index.sqlite-wal"
	files := map[string][]byte{log: read(log), db: read(db)}
	for after := read(log); !bytes.HasPrefix(after, files[log]); after = read(log) {
		files[log], files[db] = after, read(db)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A renamed shows an FS under another path.
type renamed struct {
	faultfs.FS
	from, to string
}

func (r *renamed) name(s string) string { return strings.Replace(s, r.from, r.to, 1) }

func (r *renamed) OpenFile(name string, flag int, perm os.FileMode) (faultfs.File, error) {
	return r.FS.OpenFile(r.name(name), flag, perm)
}
func (r *renamed) Rename(from, to string) error { return r.FS.Rename(r.name(from), r.name(to)) }
func (r *renamed) Remove(name string) error     { return r.FS.Remove(r.name(name)) }
func (r *renamed) MkdirAll(name string, perm os.FileMode) error {
	return r.FS.MkdirAll(r.name(name), perm)
}
func (r *renamed) ReadDir(name string) ([]os.DirEntry, error) { return r.FS.ReadDir(r.name(name)) }
func (r *renamed) Stat(name string) (os.FileInfo, error)      { return r.FS.Stat(r.name(name)) }
func (r *renamed) SyncDir(name string) error                  { return r.FS.SyncDir(r.name(name)) }
func (r *renamed) SyncAll(name string) error                  { return r.FS.SyncAll(r.name(name)) }

// logged gives a logger and what it said.
func logged() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&lockedWriter{b: &b}, nil)), &b
}

type lockedWriter struct {
	mu sync.Mutex
	b  *bytes.Buffer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
