package sessionlog

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
)

// again gives a log so many times over.
type again struct {
	log   []byte
	times int
	r     bytes.Reader
	each  func()
}

func (a *again) Read(b []byte) (int, error) {
	if a.r.Len() == 0 {
		if a.times == 0 {
			return 0, io.EOF
		}
		a.times--
		a.each()
		a.r.Reset(a.log)
	}
	return a.r.Read(b)
}

// TestFoldLong folds a long log and holds what is in memory meanwhile to a bound that does not grow with it: 50,000 events, or,
// where TAPEDECK_LONG is set, 5,000,000.
func TestFoldLong(t *testing.T) {
	log, want := benchLog(1000), 50_000
	if os.Getenv("TAPEDECK_LONG") != "" {
		want = 5_000_000
	}
	events := bytes.Count(log, []byte("\n"))
	const bound = 32 << 20
	var peak uint64
	seen, begun := FoldSeen{}, time.Now()
	in := &again{log: log, times: want/events + 1, each: func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}}
	snap, err := SnapshotOf(NewReader(in, "long", nil), &FoldOptions{Seen: &seen})
	if n := seen.Events; err != nil || n < want || len(snap.ProcessByAgent) != 25 || snap.PageOutCount < uint64(want)/40 {
		t.Fatalf("%v: %d events, %+v", err, n, snap)
	}
	if peak > bound {
		t.Errorf("%d bytes were in memory, want at most %d", peak, bound)
	}
	t.Logf("%d events in %v, at most %d kB in memory", seen.Events, time.Since(begun), peak/1000)
}
