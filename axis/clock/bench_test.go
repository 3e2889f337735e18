package clock

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// BenchmarkHook is what a reading costs more where nobody records: 0 allocations, under 2 ns.
func BenchmarkHook(b *testing.B) {
	c := New(nil)
	b.ReportAllocs()
	for b.Loop() {
		_ = c.noteRead(SourceWall, 1)
	}
}

func BenchmarkNow(b *testing.B) { both(b, func(c *Clock) { c.Now() }) }

func BenchmarkSleep(b *testing.B) {
	ctx := context.Background()
	both(b, func(c *Clock) { _ = c.Sleep(ctx, time.Millisecond) })
}

// both runs f without a tape and with one.
func both(b *testing.B, f func(c *Clock)) {
	for name, w := range map[string]io.Writer{"off": nil, "on": io.Discard} {
		b.Run("tape "+name, func(b *testing.B) {
			c := New(nil)
			if w != nil {
				tw, err := tape.NewWriter(w, &tape.Header{})
				if err != nil {
					b.Fatal(err)
				}
				c.Record(tape.NewRecorder(tw, &tape.RecorderOptions{Now: c.Stamp}))
			}
			b.ReportAllocs()
			for b.Loop() {
				f(c)
			}
		})
	}
}

// BenchmarkTurns is 64 branches of which each sleeps ten times.
func BenchmarkTurns(b *testing.B) {
	var all []func(context.Context) error
	c := New(nil)
	for i := range 64 {
		all = append(all, func(ctx context.Context) error {
			for k := range 10 {
				if err := c.Sleep(ctx, time.Duration(1+i*k%7)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Parallel(context.Background(), all...); err != nil {
			b.Fatal(err)
		}
	}
}
