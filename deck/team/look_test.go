package team_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// long is a recording of so many records, each of a file that was written, and a terminal behind them.
func long(t testing.TB, id string, records, blob int) *recording.Recording {
	t.Helper()
	rec := made(t, id, "a prompt", "an answer", nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	tt := NewTape(t)
	for i := range records {
		var b strings.Builder
		for b.Len() < blob {
			fmt.Fprintf(&b, "%x ", rnd.Uint64())
		}
		tt.Record(&tape.FileWrite{File: tape.File{Path: fmt.Sprintf("src/%d.txt", i), Content: tt.Payload(b.String())}})
	}
	tt.Close()
	must(t, os.RemoveAll(rec.TapePath()+tape.StoreSuffix))
	must(t, os.Rename(tt.Path, rec.TapePath()))
	if recording.Exists(tt.Path + tape.StoreSuffix) {
		must(t, os.Rename(tt.Path+tape.StoreSuffix, rec.TapePath()+tape.StoreSuffix))
	}
	must(t, os.WriteFile(rec.DiffPath(), []byte("a patch\n"), 0o600))
	return rec
}

// counting counts the bytes that are read of packed recordings.
type counting struct {
	team.Access
	n atomic.Int64
}

func (c *counting) Blob(ctx context.Context, run *team.Run, from, n int64) (io.ReadCloser, error) {
	c.n.Add(n)
	return c.Access.Blob(ctx, run, from, n)
}

// contentsOf are the files of a directory.
func contentsOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, dir)] = string(b)
		return err
	}))
	return out
}

// A run is looked at where it lies: one record with a little of it, and all of it, blob by blob, as it was pushed.
func TestLook(t *testing.T) {
	rec := long(t, "long", 1500, 12_000)
	eachPair(t, func(t *testing.T, at place) {
		s := &counting{Access: at.open(t)}
		run, _, err := s.Push(t.Context(), rec, &team.PushOptions{Project: "p"})
		must(t, err)
		if run.Table.IsZero() {
			t.Fatalf("a run of %d bytes has no table", run.Size)
		}
		read := &s.n
		seq := uint64(1234)
		dir := filepath.Join(t.TempDir(), "a")
		_, clean, err := team.Look(t.Context(), s, "p", "lon", dir, &team.LookOptions{Seq: &seq})
		must(t, err)
		defer clean()
		one, err := recording.Open(dir)
		must(t, err)
		f, err := one.OpenTape()
		must(t, err)
		defer f.Close()
		var seqs []uint64
		for r, err := range f.Records() {
			must(t, err)
			seqs = append(seqs, r.Seq)
			b, err := tape.Payloads(r.Kind)[0].Bytes(f.Store)
			if err != nil || len(b) < 12_000 {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		}
		if fmt.Sprint(seqs) != "[1234]" {
			t.Errorf("records %v", seqs)
		}
		t.Logf("a record and its payload: %d of %d bytes", read.Load(), run.Size)
		if read.Load() > run.Size/3 {
			t.Errorf("%d of %d bytes were read", read.Load(), run.Size)
		}
		read.Store(0)
		all := filepath.Join(t.TempDir(), "b")
		_, clean, err = team.Look(t.Context(), s, "p", "long", all, nil)
		must(t, err)
		defer clean()
		if read.Load() > run.Size/3 {
			t.Errorf("%d of %d bytes were read for all but blobs", read.Load(), run.Size)
		}
		whole, err := recording.Open(all)
		must(t, err)
		store, err := whole.Store()
		must(t, err)
		if missing, err := whole.MissingBlobs(store); err != nil || len(missing) > 0 {
			t.Errorf("missing: %v, %v", missing, err)
		}
		for _, err := range store.All() {
			must(t, err)
		}
		if got, want := contentsOf(t, all), contentsOf(t, rec.Dir); len(got) != len(want) {
			t.Errorf("%d files of %d", len(got), len(want))
		} else {
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%s is another", name)
				}
			}
		}
		var lost *cas.MissingError
		if _, err := store.Get(cas.Sum([]byte("no blob"))); !errors.As(err, &lost) {
			t.Error(err)
		}
	})
}

// What has no table is fetched whole, with progress, and what was damaged in its place is told.
func TestLookAtOthers(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		_, _, err := s.Push(t.Context(), made(t, "short", "a prompt", "an answer", nil), nil)
		must(t, err)
		told := int64(0)
		dir := filepath.Join(t.TempDir(), "a")
		_, clean, err := team.Look(t.Context(), s, "", "short", dir, &team.LookOptions{Progress: func(done, _ int64) { told = done }})
		must(t, err)
		clean()
		if rec, err := recording.Open(dir); err != nil || rec.Manifest.ID != "short" || told == 0 {
			t.Errorf("%v; %d bytes were told", err, told)
		}
		if _, _, err := team.Look(t.Context(), s, "", "none", dir+"2", nil); !errors.Is(err, team.ErrNoRun) {
			t.Error(err)
		}
		run, _, err := s.Push(t.Context(), long(t, "damaged", 1000, 3000), nil)
		must(t, err)
		at.direct(t).Damage(t.Context(), run, func(b []byte) { b[len(b)/20]++; b[len(b)-40]++ })
		if _, _, err := team.Look(t.Context(), s, "", "damaged", dir+"3", nil); !errors.Is(err, packed.ErrDamaged) || recording.Exists(dir+"3") {
			t.Error(err)
		}
		at.direct(t).Damage(t.Context(), run, func(b []byte) { b[len(b)-40]-- })
		if _, _, err := team.Look(t.Context(), s, "", "damaged", dir+"3", nil); !errors.Is(err, packed.ErrDamaged) || recording.Exists(dir+"3") {
			t.Error(err)
		}
	})
}

// What is looked at has no more files and bytes than what is pulled.
func TestLookIsBounded(t *testing.T) {
	at := place{runs: "sqlite://" + filepath.Join(t.TempDir(), "runs.sqlite"), blobs: "file://" + filepath.Join(t.TempDir(), "blobs")}
	s := at.direct(t)
	push(t, s, long(t, "long", 300, 12_000))
	for name, limit := range map[string][2]int64{"files": {1 << 30, 2}, "bytes": {1000, 1000}} {
		func() {
			defer team.LimitLook(limit[0], limit[1])()
			dir := filepath.Join(t.TempDir(), "a")
			var le *packed.LimitError
			if _, _, err := team.Look(t.Context(), s, "", "long", dir, nil); !errors.As(err, &le) || le.What != name || recording.Exists(dir) {
				t.Errorf("%s: %v", name, err)
			}
		}()
	}
	defer team.LimitLook(1<<30, 100)()
	dir := filepath.Join(t.TempDir(), "b")
	_, clean, err := team.Look(t.Context(), s, "", "long", dir, nil)
	must(t, err)
	defer clean()
	rec, err := recording.Open(dir)
	must(t, err)
	store, err := rec.Store()
	must(t, err)
	var le *packed.LimitError
	for _, err := range store.All() {
		errors.As(err, &le)
	}
	if le == nil || len(contentsOf(t, dir)) > 100 {
		t.Errorf("%v; %d files", le, len(contentsOf(t, dir)))
	}
}

// TAPEDECK_LONG=1 looks at one record of a run of so many bytes: it takes minutes, and three times as much disk.
func TestLookAtALongOne(t *testing.T) {
	if os.Getenv("TAPEDECK_LONG") == "" {
		t.Skip("TAPEDECK_LONG is not set: a run of 5 GB takes minutes, and 15 GB of disk")
	}
	const blobs, each, records = 48, 100 << 20, 400_000
	rec := made(t, "long", "a prompt", "an answer", nil)
	rnd := rand.NewChaCha8([32]byte{})
	tt := NewTape(t)
	b := make([]byte, each)
	for range blobs {
		_, _ = rnd.Read(b)
		tt.Record(&tape.FileWrite{File: tape.File{Path: "a", Content: tt.Payload(string(b))}})
	}
	for range records {
		_, _ = rnd.Read(b[:100])
		tt.Record(&tape.FileWrite{File: tape.File{Path: fmt.Sprintf("src/%x.txt", b[:100])}})
	}
	tt.Close()
	must(t, os.RemoveAll(rec.TapePath()+tape.StoreSuffix))
	must(t, os.Rename(tt.Path, rec.TapePath()))
	must(t, os.Rename(tt.Path+tape.StoreSuffix, rec.TapePath()+tape.StoreSuffix))
	at := place{runs: "sqlite://" + filepath.Join(t.TempDir(), "runs.sqlite"), blobs: os.Getenv(bucketVar)}
	if at.blobs == "" {
		at.blobs = "file://" + filepath.Join(t.TempDir(), "blobs")
	}
	s := &counting{Access: at.direct(t)}
	began := time.Now()
	run := push(t, s, rec)
	t.Logf("%d bytes were pushed in %s", run.Size, time.Since(began))
	read := &s.n
	for _, seq := range []uint64{1, records / 2, records - 1} {
		read.Store(0)
		began := time.Now()
		_, clean, err := team.Look(t.Context(), s, "", "long", filepath.Join(t.TempDir(), "a"), &team.LookOptions{Seq: &seq})
		must(t, err)
		t.Logf("record %d: %d bytes in %s", seq, read.Load(), time.Since(began))
		clean()
		if read.Load() > 1<<20 {
			t.Errorf("record %d: %d bytes were read", seq, read.Load())
		}
	}
}
