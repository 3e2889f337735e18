package store_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// filled is a store with ended runs.
func filled(t testing.TB, dir string, runs, turns int) *store.Disk {
	t.Helper()
	s := openDisk(t, dir, nil)
	work := make(chan int)
	done := make(chan error)
	for range 32 {
		go func() {
			var failed error
			for i := range work {
				if err := fillRun(s, i, turns); err != nil {
					failed = err
				}
			}
			done <- failed
		}()
	}
	for i := range runs {
		work <- i
	}
	close(work)
	for range 32 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func fillRun(s *store.Disk, i, turns int) error {
	ctx := context.Background()
	id := runtrace.ID{Agent: fmt.Sprint("agent", i%100), Run: fmt.Sprintf("run-%06d", i)}
	if _, err := s.Start(ctx, &runtrace.Started{RunID: id.Run, AgentID: id.Agent, Intent: "one of many runs that somebody looks through"}); err != nil {
		return err
	}
	prompt := "build the thing"
	batch := make([]runtrace.Turn, runtrace.MaxBatch)
	for k := range batch {
		batch[k].Prompt = &prompt
	}
	for n := 0; n < turns; n += len(batch) {
		if _, err := s.Append(ctx, id, batch[:min(len(batch), turns-n)]); err != nil {
			return err
		}
	}
	return s.End(ctx, id, &runtrace.Ended{})
}

// All runs are listed and one trace is opened within 50 ms: 10,000 runs of 2,000 turns in the long form, on a machine that does
// nothing else; the short form looks that it is not far off with a tenth.
func TestListAndOpen(t *testing.T) {
	runs, turns, limit := 1000, 100, 500*time.Millisecond
	if os.Getenv("TAPEDECK_LONG") != "" {
		runs, turns, limit = 10_000, runtrace.MaxTurns, 50*time.Millisecond
	}
	dir := t.TempDir()
	s := filled(t, dir, runs, turns)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s = openDisk(t, dir, nil)
	t.Logf("opened in %s", time.Since(began))
	best := time.Hour
	for i := range 5 {
		began := time.Now()
		list, err := s.List(t.Context(), "")
		listed := time.Since(began)
		if err != nil || len(list) != runs || list[0].Turns != turns {
			t.Fatalf("%d runs, %v", len(list), err)
		}
		tr, err := s.Trace(t.Context(), list[(i*7919)%runs].ID, nil)
		took := time.Since(began)
		if err != nil || len(tr.Records) != turns+2 {
			t.Fatalf("%d records, %v", len(tr.Records), err)
		}
		t.Logf("%d runs listed in %s, a trace of %d records opened in %s", len(list), listed, len(tr.Records), took-listed)
		best = min(best, took)
	}
	if best > limit {
		t.Errorf("it took %s, no more than %s was promised", best, limit)
	}
}

// BenchmarkList measures listing and opening apart.
func BenchmarkList(b *testing.B) {
	s := filled(b, b.TempDir(), 10_000, 1)
	b.Run("runs=10000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.List(b.Context(), ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := fillRun(s, 10_001, runtrace.MaxTurns); err != nil {
		b.Fatal(err)
	}
	b.Run("trace=2000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Trace(b.Context(), runtrace.ID{Agent: "agent1", Run: "run-010001"}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
