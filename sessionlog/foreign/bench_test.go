package foreign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

func kinds() []string {
	var names []string
	for name := range transcripts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// BenchmarkImport reads a long transcript of each kind.
func BenchmarkImport(b *testing.B) {
	for _, kind := range kinds() {
		b.Run(kind, func(b *testing.B) {
			path := longTranscript(b, kind, 64<<20)
			b.SetBytes(sizeOf(b, path))
			b.ReportAllocs()
			before := cputime.Spent()
			for b.Loop() {
				importAll(b, kind, path)
			}
			perProcessor(b, path, cputime.Spent()-before)
		})
	}
}

// BenchmarkPlain is what BenchmarkImport is held against: each line read once by encoding/json into any.
func BenchmarkPlain(b *testing.B) {
	for _, kind := range kinds() {
		b.Run(kind, func(b *testing.B) {
			path := longTranscript(b, kind, 64<<20)
			b.SetBytes(sizeOf(b, path))
			b.ReportAllocs()
			before := cputime.Spent()
			for b.Loop() {
				plainly(b, path)
			}
			perProcessor(b, path, cputime.Spent()-before)
		})
	}
}

// perProcessor reports how much was read in a second of a processor, whatever else keeps the machine busy.
func perProcessor(b *testing.B, path string, work time.Duration) {
	b.ReportMetric(float64(sizeOf(b, path))*float64(b.N)/1e6/work.Seconds(), "MB/cpu-s")
}

func sizeOf(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func importAll(t testing.TB, kind, path string) *Report {
	t.Helper()
	i, ok := ByName(kind)
	if !ok {
		t.Fatalf("no importer %s", kind)
	}
	r, err := i.Import(context.Background(), path, func(sessionlog.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func plainly(t testing.TB, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var v any
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			return
		}
	}
}

// longSize is how much a test of memory reads: 5 MB, or, where TAPEDECK_LONG is set, 500 MB.
func longSize() int {
	if os.Getenv("TAPEDECK_LONG") != "" {
		return 500_000_000
	}
	return 5_000_000
}

// TestLong reads a long transcript of each kind in bounded memory, and logs how fast that went.
func TestLong(t *testing.T) {
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) { importLong(t, kind, longTranscript(t, kind, longSize())) })
	}
}

// importLong imports a file and holds the heap meanwhile to a bound that does not grow with the file. Its log is what
// integration/bench reads.
func importLong(t *testing.T, kind, path string) {
	t.Helper()
	const bound = 256e6
	stop, peak := make(chan bool), make(chan uint64)
	runtime.GC()
	go watch(stop, peak)
	began, before := time.Now(), cputime.Spent()
	r := importAll(t, kind, path)
	took, work := time.Since(began), cputime.Spent()-before
	close(stop)
	most, size := <-peak, float64(sizeOf(t, path))/1e6
	rate := size / min(took, work).Seconds() // the least of both: others may keep the machine busy
	t.Logf("%.0f MB in %v (%v of a processor): %.0f MB/s, %d turns, heap at most %d MB",
		size, took.Round(time.Millisecond), work.Round(time.Millisecond), rate, r.Turns, most/1e6)
	if r.Turns == 0 || r.Calls != r.Results || r.Turns != r.Calls {
		t.Errorf("%+v", r)
	}
	if most > bound {
		t.Errorf("heap of %d MB, want at most %.0f", most/1e6, bound/1e6)
	}
}

// watch looks at the heap until stop, and then tells the most that it saw.
func watch(stop chan bool, peak chan uint64) {
	var most uint64
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		select {
		case <-stop:
			tick.Stop()
			peak <- most
			return
		case <-tick.C:
		}
	}
}
