//go:build load && linux

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// soak keeps a daemon at full rate while sessions come and go, and holds what it has afterwards to what it had before.
func soak(ctx context.Context, st *stage) error {
	n, long := of(st, 50, 500), of(st, 10*time.Second, 10*time.Minute)
	d, err := st.serve(ctx, filepath.Join(st.dir, "soak"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(d.data)
	defer d.kill()
	if _, err := soakRound(ctx, d, n, 2*time.Second); err != nil { // what is made on first use is there
		return err
	}
	before, err := d.settled(ctx)
	if err != nil {
		return err
	}
	turns, err := soakRound(ctx, d, n, long)
	if err != nil {
		return err
	}
	after, err := d.settled(ctx)
	if err != nil {
		return err
	}
	took, err := d.stop()
	if err != nil {
		return err
	}
	say := func(name string) string { return fmt.Sprintf("%.0f before, %.0f after", before[name], after[name]) }
	st.note(fmt.Sprintf("%v, %d sessions at once, coming and going", long, n), "%d acknowledged turns; goroutines %s; descriptors %s; resident MB %.0f before, %.0f after; stopped in %v",
		turns, say("go_goroutines"), say("process_open_fds"), before["process_resident_memory_bytes"]/1e6, after["process_resident_memory_bytes"]/1e6, took.Round(time.Millisecond))
	for name, more := range map[string]float64{"go_goroutines": 10, "process_open_fds": 10} {
		if after[name] > before[name]+more {
			return fmt.Errorf("%s: %s", name, say(name))
		}
	}
	return nil
}

// soakRound has n sessions at a time, each for a random while, half of which end without a word.
func soakRound(ctx context.Context, d *daemon, n int, long time.Duration) (int64, error) {
	var turns atomic.Int64
	end := time.Now().Add(long)
	err := side(n, n, func(i int) error {
		for life := 0; time.Now().Before(end) && ctx.Err() == nil; life++ {
			s, err := d.dial(ctx, fmt.Sprintf("soak-%d", i))
			if err != nil {
				return err
			}
			if err := s.start(ctx, ""); err != nil {
				return err
			}
			for range 1 + rand.IntN(400) {
				if _, err := s.record(ctx, batchOf(4)); err != nil {
					return err
				}
				turns.Add(4)
			}
			if life%2 == 0 {
				outcome := fmt.Sprintf(`{"run_id":%q,"outcome":{"status":"success","summary":"soaked","evidence":[],"metrics":{},"timestamp":%q}}`, s.run, time.Now().UTC().Format(time.RFC3339))
				if _, err := s.call(ctx, "runs.complete", outcome); err != nil {
					return err
				}
			}
			s.close()
		}
		return nil
	})
	return turns.Load(), err
}

// settled returns the daemon's figures once graces are over and its garbage is collected.
func (d *daemon) settled(ctx context.Context) (map[string]float64, error) {
	var m map[string]float64
	var err error
	for last := -1.; ; {
		time.Sleep(3 * time.Second)
		if m, err = d.metrics(ctx); err != nil || m["go_goroutines"] == last {
			return m, err
		}
		last = m["go_goroutines"]
	}
}
