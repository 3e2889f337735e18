package logload_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog/logload"
)

// held counts what a log in dir holds.
func held(t *testing.T, dir string) (records, bytes int) {
	t.Helper()
	l, err := seglog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context())
	for r, err := range l.Records(0) {
		if err != nil {
			t.Fatal(err)
		}
		records, bytes = records+1, bytes+len(r.Data)
	}
	return records, bytes
}

func check(t *testing.T, r *logload.Result, err error, records, bytes int) {
	t.Helper()
	if err != nil || r.Records != records || r.Bytes != bytes || r.PerSecond() <= 0 || r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestLoadsDoWhatTheySay(t *testing.T) {
	loads := map[string]logload.Load{
		"appenders": {Appenders: 7, Size: 100, Records: 70},
		"arrivals":  {Arrivals: logload.Every(70, 20_000, 100, 7)},
	}
	for name, load := range loads {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			blocks, all := 0, 0
			load.Log = &seglog.Options{Committed: func(b seglog.Batch) { blocks, all = blocks+1, all+b.Bytes }}
			r, err := logload.Run(t.Context(), dir, load)
			check(t, r, err, 70, 7000)
			if records, bytes := held(t, dir); records != 70 || bytes != 7000 {
				t.Errorf("the log holds %d records of %d bytes together", records, bytes)
			}
			sum := 0
			for _, n := range r.Blocks {
				sum += n
			}
			if len(r.Blocks) != blocks || sum != all {
				t.Errorf("%d blocks of %d bytes, the log wrote %d of %d", len(r.Blocks), sum, blocks, all)
			}
			if took, err := logload.Bare(t.TempDir(), r.Blocks); err != nil || took <= 0 {
				t.Error(took, err)
			}
			dir = t.TempDir()
			r, err = logload.Sessions(t.Context(), dir, load)
			check(t, r, err, 70, 7000)
			for _, session := range []string{"0", "6"} {
				if info, err := os.Stat(filepath.Join(dir, session)); err != nil || info.Size() != 1000 {
					t.Error(session, info, err)
				}
			}
		})
	}
}

// TestBatchesAreReplayed as the very blocks that they were.
func TestBatchesAreReplayed(t *testing.T) {
	var batches []seglog.Batch
	record := func(b seglog.Batch) { batches = append(batches, b) }
	load := logload.Load{Appenders: 50, Size: 300, Records: 1000, Log: &seglog.Options{Committed: record, SegmentSize: 20_000}}
	if _, err := logload.Run(t.Context(), t.TempDir(), load); err != nil {
		t.Fatal(err)
	}
	first := batches
	batches = nil
	r, err := logload.Run(t.Context(), t.TempDir(), logload.Load{Batches: first, Log: load.Log})
	check(t, r, err, 1000, 300_000)
	batches = batches[1:] // the record that sets it going
	if len(r.Blocks) != len(first) || len(batches) != len(first) {
		t.Fatalf("%d blocks of %d", len(r.Blocks), len(first))
	}
	for i, b := range first {
		if got := batches[i]; got.Records != b.Records || got.Bytes != b.Bytes {
			t.Fatalf("block %d has %d records and %d bytes, want %d and %d", i, got.Records, got.Bytes, b.Records, b.Bytes)
		}
	}
}

func TestArrivalsWaitForTheirTime(t *testing.T) {
	r, err := logload.Run(t.Context(), t.TempDir(), logload.Load{Arrivals: logload.Every(5, 100, 10, 1)})
	if err != nil || r.Elapsed < 40*time.Millisecond {
		t.Error(r, err)
	}
}

func TestALoadThatFailsSaysSo(t *testing.T) {
	broken := errors.New("broken")
	for name, load := range map[string]logload.Load{
		"appenders": {Appenders: 3, Size: 10, Records: 30},
		"arrivals":  {Arrivals: logload.Every(10, 10_000, 10, 1)},
		"batches":   {Batches: []seglog.Batch{{Records: 2, Bytes: 60}, {Records: 1, Bytes: 50}, {Records: 1, Bytes: 50}}},
	} {
		n := 0
		load.Log = &seglog.Options{FS: &faultfs.Hook{Inner: faultfs.OS, Before: func(c *faultfs.Call) error {
			if c.Op == faultfs.OpSync {
				if n++; n > 3 {
					return broken
				}
			}
			return nil
		}}}
		if _, err := logload.Run(t.Context(), t.TempDir(), load); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
