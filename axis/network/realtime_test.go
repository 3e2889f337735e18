package network

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestSpeed replays chunks at their times, twice as fast, and at once.
func TestSpeed(t *testing.T) {
	for speed, want := range map[float64][]time.Duration{
		1:   {0, 200 * time.Millisecond, 200 * time.Millisecond, time.Second},
		2:   {0, 100 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond},
		0.5: {0, 400 * time.Millisecond, 400 * time.Millisecond, 2 * time.Second},
		0:   {0, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			body := &tapeBody{
				r: io.NopCloser(strings.NewReader("abcd")), rest: 4, speed: speed, start: time.Now(),
				chunks: []tape.Chunk{{Length: 1}, {Length: 1, TMS: 200}, {Length: 1, TMS: 200}, {Length: 1, TMS: 1000}},
			}
			for i, due := range want {
				chunk, err := body.next(context.Background())
				if took := time.Since(body.start); err != nil || string(chunk) != "abcd"[i:i+1] || took != due {
					t.Errorf("speed %v: chunk %d is %q after %v, want %v; %v", speed, i, chunk, took, due, err)
				}
			}
		})
	}
}

// TestSpeedOfACancelledAnswer waits for no chunk once the program has gone.
func TestSpeedOfACancelledAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	slow := &tapeBody{r: http.NoBody, chunks: []tape.Chunk{{Length: 3, TMS: 1e9}}, speed: 1, start: time.Now()}
	if _, err := slow.next(ctx); !errors.Is(err, errCancelled) {
		t.Errorf("a wait that was cancelled gave %v", err)
	}
}

// TestHeldOn gives an answer that was cancelled while recording to a program that does not cancel it.
func TestHeldOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		body := &tapeBody{r: io.NopCloser(strings.NewReader("a")), rest: 1, chunks: []tape.Chunk{{Length: 1}}, cut: Cancelled}
		if chunk, err := body.next(t.Context()); err != nil || string(chunk) != "a" || time.Since(begun) != 0 {
			t.Errorf("got %q, %v after %v", chunk, err, time.Since(begun))
		}
		if _, err := body.next(t.Context()); errorText(err) != HeldOn || time.Since(begun) != cancelPatience {
			t.Errorf("ended with %v after %v", err, time.Since(begun))
		}
	})
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
