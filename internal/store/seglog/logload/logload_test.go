package logload_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog/logload"
)

var load = logload.Load{Appenders: 7, Size: 100, Records: 70}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	r, err := logload.Run(t.Context(), dir, load)
	if err != nil || r.Records != 70 || r.PerSecond() <= 0 || r.P99 <= 0 || len(r.Blocks) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	l, err := seglog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context())
	records := 0
	for r, err := range l.Records(0) {
		if err != nil || len(r.Data) != 100 {
			t.Fatalf("%d bytes, %v", len(r.Data), err)
		}
		records++
	}
	if records != 70 {
		t.Errorf("the log holds %d records", records)
	}
}

func TestSessions(t *testing.T) {
	dir := t.TempDir()
	if r, err := logload.Sessions(dir, load); err != nil || r.Records != 70 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, session := range []string{"0", "6"} {
		if info, err := os.Stat(filepath.Join(dir, session)); err != nil || info.Size() != 1000 {
			t.Error(session, info, err)
		}
	}
}

func TestALoadThatFailsSaysSo(t *testing.T) {
	broken, n := errors.New("broken"), 0
	load := load
	load.Log = &seglog.Options{FS: &faultfs.Hook{Inner: faultfs.OS, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpSync {
			if n++; n > 3 {
				return broken
			}
		}
		return nil
	}}}
	if _, err := logload.Run(t.Context(), t.TempDir(), load); !errors.Is(err, broken) {
		t.Error(err)
	}
}
