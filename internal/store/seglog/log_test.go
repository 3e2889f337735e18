package seglog_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

func open(t testing.TB, dir string, o *seglog.Options) *seglog.Log {
	t.Helper()
	l, err := seglog.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

func shut(t testing.TB, l *seglog.Log) {
	t.Helper()
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// appendAll appends records one after another, each acknowledged before the next.
func appendAll(t testing.TB, l *seglog.Log, records ...string) {
	t.Helper()
	for _, r := range records {
		want := l.End()
		if pos, err := l.AppendWait(t.Context(), []byte(r)); err != nil || pos != want {
			t.Fatalf("append: position %d, want %d, error %v", pos, want, err)
		}
	}
}

// all reads the whole log.
func all(t testing.TB, l *seglog.Log, from seglog.Pos) []string {
	t.Helper()
	got, want := []string{}, max(from, 1)
	for r, err := range l.Records(from) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Pos != want {
			t.Fatalf("record %d, want %d", r.Pos, want)
		}
		want++
		got = append(got, string(r.Data))
	}
	if len(got) > 0 && want != l.End() {
		t.Fatalf("the last record was %d, the log ends at %d", want-1, l.End())
	}
	return got
}

func equal(t testing.TB, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("record %d is %.80q, want %.80q", i+1, got[i], want[i])
		}
	}
}

func numbered(n int) []string {
	records := make([]string, n)
	for i := range records {
		records[i] = fmt.Sprintf(`{"record":%d}`, i)
	}
	return records
}

func TestRecordsOutliveTheLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	records := numbered(300)
	var rotated []seglog.Pos
	for i := 0; i < len(records); i += 100 {
		l := open(t, dir, &seglog.Options{SegmentSize: 1000, Rotated: func(first seglog.Pos) { rotated = append(rotated, first) }})
		if l.End() != seglog.Pos(i+1) {
			t.Fatalf("the log ends at %d, want %d", l.End(), i+1)
		}
		equal(t, all(t, l, 0), records[:i])
		appendAll(t, l, records[i:i+100]...)
		equal(t, all(t, l, 0), records[:i+100])
		equal(t, all(t, l, 7), records[6:i+100])
		shut(t, l)
	}
	if len(rotated) < 10 {
		t.Errorf("rotated %d times", len(rotated))
	}
}

func TestManyAppendAtOnce(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, &seglog.Options{MaxBlock: 2000, SegmentSize: 10_000})
	want := make([]string, 2001)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 100 {
		wg.Go(func() {
			for i := range 20 {
				r := fmt.Sprintf("goroutine %d, record %d", g, i)
				pos, err := l.AppendWait(t.Context(), []byte(r))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want[pos] = r
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	equal(t, all(t, l, 0), want[1:])
	shut(t, l)
	equal(t, all(t, open(t, dir, nil), 0), want[1:])
}
