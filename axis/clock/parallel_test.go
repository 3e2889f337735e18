package clock_test

import (
	"context"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
)

type ctxFunc = func(context.Context) error

// sleeper sleeps and reads.
func sleeper(c *clock.Clock, ms ...int) ctxFunc {
	return func(ctx context.Context) error {
		for _, d := range ms {
			if err := c.Sleep(ctx, time.Duration(d)*time.Millisecond); err != nil {
				return err
			}
			c.Now()
		}
		return nil
	}
}

func TestSixtyFourBranchesAlwaysInOneOrder(t *testing.T) {
	run := func() string {
		c, _, lines := taped(t, nil)
		var all []ctxFunc
		for i := range 64 {
			all = append(all, sleeper(c, i%7, 13-i%5, i*i%11))
		}
		if err := c.Parallel(t.Context(), all...); err != nil {
			t.Fatal(err)
		}
		return lines()
	}
	want := run()
	for range 200 {
		if got := run(); got != want {
			t.Fatalf("got\n%swant\n%s", got, want)
		}
	}
}
