package testbench_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// benchCalls is how many calls one run of the benchmark makes.
const benchCalls = 1000

// BenchmarkRun opens a bench, makes 1,000 calls of ten sorts and closes it, with the tape on disk and without one. x-off is the time
// of the one over that of the other, of each its fastest run: the machine is shared.
func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	calls := make([]process.Call, benchCalls/10)
	for i := range calls {
		calls[i] = process.Call{Program: "git", Args: []string{"status", "--short"}, Stdout: " M main.go\n?? notes.txt\n", DurationMS: 20}
	}
	rules := []fixture.Rule{{Match: fixture.Match{Any: true}, Times: benchCalls, Response: &fixture.Response{Text: "I look at the file first."}}}
	conf := testbench.Config{
		Name: "bench", Env: map[string]string{"HOME": "/home/x"},
		LLM: testbench.LLM{Rules: rules}, Processes: testbench.Processes{Calls: calls},
	}
	taped := conf
	taped.Emit = filepath.Join(dir, "run.tape")
	on, off := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		off = min(off, timed(func() { thousandCalls(b, &conf) }))
		on = min(on, timed(func() { thousandCalls(b, &taped) }))
	}
	b.ReportMetric(float64(on)/float64(off), "x-off")
	b.ReportMetric(float64(on.Microseconds()), "us-on")
	b.ReportMetric(float64(off.Microseconds()), "us-off")
	b.ReportMetric(0, "ns/op")
}

func timed(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}

func thousandCalls(b *testing.B, conf *testbench.Config) {
	bench, err := testbench.Open(conf)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	for i := range benchCalls / 10 {
		for _, f := range []func() error{
			func() error { bench.Clock().Now(); return nil },
			func() error { return bench.Clock().Sleep(ctx, time.Minute) },
			func() error { bench.Clock().Monotonic(); return nil },
			func() error {
				_, err := bench.Model().Complete(ctx, &fixture.Request{
					System: "You are an agent that works on a repository.", Messages: fmt.Sprintf("step %d: what next?", i),
				})
				return err
			},
			func() error { return bench.Processes().Command(ctx, "git", "status", "--short").Run() },
			func() error { _, err := bench.Random().Int(1, 100); return err },
			func() error { bench.Getenv("HOME"); return nil },
			func() error { bench.Clock().Now(); return nil },
			func() error { bench.Getenv("PATH"); return nil },
			func() error { return bench.Clock().Sleep(ctx, time.Second) },
		} {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := bench.Close(); err != nil {
		b.Fatal(err)
	}
}
