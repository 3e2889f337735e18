package seglog_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

const ahead = "ahead.tmp"

// prepared appends until a segment that was prepared is in use, which every name of the log's directory shows.
func prepared(t *testing.T, l *seglog.Log, dir string, records []string) (n int) {
	t.Helper()
	for i, r := range records {
		appendAll(t, l, r)
		names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if info, err := os.Stat(name); err == nil && info.Size() == 1<<20 {
				return i + 1
			}
		}
	}
	t.Fatal("no segment was prepared")
	return 0
}

func TestAPreparedSegment(t *testing.T) {
	dir := t.TempDir()
	records := strings.Split(strings.Repeat(strings.Repeat("x", 4000)+" ", 700), " ")
	records = records[:700]
	o := &seglog.Options{SegmentSize: 1 << 20, Prepare: true}
	l := open(t, dir, o)
	n := prepared(t, l, dir, records)
	if n > 1<<20/4000 {
		t.Errorf("the first segment took %d records: it is left early once the next is there", n)
	}
	appendAll(t, l, records[n:]...)
	equal(t, all(t, l, 0), records)
	shut(t, l)
	if _, err := os.Stat(filepath.Join(dir, ahead)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s stays behind: %v", ahead, err)
	}
	if err := os.WriteFile(filepath.Join(dir, ahead), []byte("of a process that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, nil)
	equal(t, all(t, l, 0), records)
	if _, err := os.Stat(filepath.Join(dir, ahead)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", ahead, err)
	}
}

// Where the next segment cannot be prepared the log goes on without.
func TestNoRoomToPrepare(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpOpen, faultfs.OpWrite, faultfs.OpSync} {
		disk := faultfs.NewMemory()
		hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
			if c.Op == op && filepath.Base(c.Name) == ahead {
				return errors.New("not this one")
			}
			return nil
		}}
		l := open(t, "/log", &seglog.Options{FS: hook, SegmentSize: 4000, Prepare: true})
		records := numbered(1000)
		appendAll(t, l, records...)
		equal(t, all(t, l, 0), records)
		shut(t, l)
	}
}

// The power fails at any moment: what was acknowledged is there.
func TestPowerCutWhilePreparing(t *testing.T) {
	for seed := range uint64(pick(30, 1000)) {
		r := rand.New(rand.NewPCG(seed, 0))
		disk := faultfs.NewMemory()
		o := &seglog.Options{FS: disk, SegmentSize: 3000, Prepare: true}
		l := open(t, "/log", o)
		records := numbered(1 + r.IntN(400))
		appendAll(t, l, records...)
		o.FS = disk.PowerCut(r)
		again, err := seglog.Open("/log", o)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		equal(t, all(t, again, 0), records)
		appendAll(t, again, "more")
		if err := errors.Join(again.Close(context.Background()), l.Close(context.Background())); err != nil {
			t.Fatal(err)
		}
	}
}

// A write that fails for want of space has the space back that the next segment was to have, before its append fails.
func TestAFullDiskTakesBackWhatWasPrepared(t *testing.T) {
	disk := faultfs.NewMemory()
	var full atomic.Bool
	hook := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpWrite && full.Load() && filepath.Ext(c.Name) == ".seg" {
			return syscall.ENOSPC
		}
		return nil
	}}
	l := open(t, "/log", &seglog.Options{FS: hook, SegmentSize: 4000, Prepare: true})
	for round := range 2 {
		for { // after a failure, from the next segment on
			appendAll(t, l, "a record")
			if _, err := disk.Stat("/log/" + ahead); err == nil {
				break
			}
		}
		full.Store(true)
		if _, err := l.AppendWait(t.Context(), []byte("no room")); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if _, err := disk.Stat("/log/" + ahead); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("round %d: the next segment still takes space: %v", round, err)
		}
		full.Store(false)
	}
}
