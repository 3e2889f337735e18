package network

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// In real time the head of an answer comes when its first chunk does: a tape does not say when it came, and who looks at the
// time to the first byte must not see the wait for a model vanish.
func TestRealtimeHead(t *testing.T) {
	g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) {
		http.NewResponseController(w).Flush() // the head by itself
		io.WriteString(w, "first")
		http.NewResponseController(w).Flush()
		io.WriteString(w, "second")
	}))
	if first := ask(g.client("h1"), "GET", "http://api.example.com/", nil); first.err != nil {
		t.Fatal(first.err)
	}
	g.tap.exchanges()                       // all is written
	g.tap.file.edit(`"t_ms":`, `"t_ms":10`) // 0 is 100 then
	const due = 100 * time.Millisecond
	begun := time.Now()
	res, err := replayRig(g, func(cfg *Config) { cfg.Speed = 1 }).client("h1").Get("http://api.example.com/")
	if took := time.Since(begun); err != nil || took < due {
		t.Fatalf("the head came after %v, %v; its first chunk is due after %v", took, err, due)
	}
	if b, err := io.ReadAll(res.Body); err != nil || string(b) != "firstsecond" {
		t.Errorf("%q, %v", b, err)
	}
	res.Body.Close()
}

// BenchmarkRealtime replays a recorded stream in real time and reports by how much the chunks come late at the program: the
// middle, the 99th of 100 and the worst, in µs. What the loopback takes is in it.
func BenchmarkRealtime(b *testing.B) {
	const chunks = 400
	recorded := recordBench(b, 1, 2<<10, func(w http.ResponseWriter, _ *http.Request) {
		for i := range chunks {
			io.WriteString(w, "event\n")
			http.NewResponseController(w).Flush()
			time.Sleep(time.Duration(1+i%5) * time.Millisecond)
		}
	})
	var late []time.Duration
	for b.Loop() {
		late = append(late, lateness(b, recorded)...)
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(late[len(late)-1].Microseconds()), "max-µs")
}

// lateness replays the one exchange of a tape in real time, and returns how late each of its chunks came.
func lateness(b *testing.B, recorded *benchTap) []time.Duration {
	b.Helper()
	g := recorded.replayOf(b, func(cfg *Config) { cfg.Speed = 1 })
	defer g.srv.Close()
	var due []tape.Chunk
	for rec, err := range recorded.records(b) {
		if err != nil {
			b.Fatal(err)
		}
		due = tape.ExchangeOf(rec.Kind).Stream
	}
	c := g.client("h1")
	ask(c, "GET", "http://api.example.com/hello", nil) // there is a connection when it begins
	begun := time.Now()
	res, err := c.Post("http://api.example.com/v1/messages", "application/json", strings.NewReader(string(benchBody(b, 0, 2<<10))))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	var late []time.Duration
	var got int64
	for buf := make([]byte, 32<<10); len(due) > 0; {
		n, err := res.Body.Read(buf)
		now := time.Since(begun)
		for got += int64(n); len(due) > 0 && due[0].Offset+due[0].Length <= got; due = due[1:] {
			late = append(late, max(now-time.Duration(due[0].TMS)*time.Millisecond, 0))
		}
		if err != nil && len(due) > 0 {
			b.Fatalf("%d chunks are missing: %v", len(due), err)
		}
	}
	return late
}
