package host

import (
	"context"
	"math"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

var clockFunctions = []*Function{
	{
		Name: "clock.now_ms", do: nowMS,
		Doc:    "Reads the wall clock.",
		Result: "Unix time in ms, an int", Example: `started = clock.now_ms()`,
	},
	{
		Name: "clock.monotonic_ms", do: monotonicMS,
		Doc:    "Reads the time that has passed since the run began.",
		Result: "ms, an int", Example: `took = clock.monotonic_ms() - before`,
	},
	{
		Name: "clock.sleep", do: sleep,
		Params:  []Param{{Name: "ms", Type: "int"}},
		Doc:     "Sleeps. On a clock that stands still this takes no time but the run's.",
		Result:  "None",
		Example: `clock.sleep(25 * 60 * 60 * 1000)`,
	},
	{
		Name: "clock.advance", do: advance,
		Params:  []Param{{Name: "ms", Type: "int"}},
		Doc:     "Lets time pass as clock.sleep does, but leaves nothing on the tape: what a test does, not its subject.",
		Result:  "None",
		Example: `clock.advance(1000)`,
	},
}

func nowMS(_ context.Context, b *testbench.Bench, _ *args) (any, error) {
	t, err := b.Clock().ReadWall()
	return t.UnixMilli(), err
}

func monotonicMS(_ context.Context, b *testbench.Bench, _ *args) (any, error) {
	d, err := b.Clock().ReadMonotonic()
	return d.Milliseconds(), err
}

func sleep(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Clock().Sleep(ctx, a.duration(0))
}

func advance(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Clock().Wait(ctx, a.duration(0))
}

// duration reads ms, not below zero.
func (a *args) duration(i int) time.Duration {
	ms := a.integer(i)
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		a.wrong(i, "ms from 0 to 292 years")
	}
	return time.Duration(ms) * time.Millisecond
}
