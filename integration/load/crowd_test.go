//go:build load && linux

package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// crowd measures how long acknowledgements take of a crowd of sessions, first by itself, then while ten flood the daemon and
// ten ask for more than they ever read.
func crowd(ctx context.Context, st *stage) error {
	n, long := of(st, 200, 2000), of(st, 3*time.Second, 20*time.Second)
	const few, rate = 10, 500.
	d, err := st.serve(ctx, filepath.Join(st.dir, "crowd"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(d.data)
	defer d.kill()
	if _, err := crowdRound(ctx, d, n, rate, long/4); err != nil { // a round leaves runs that end in the next one: each has one before it
		return err
	}
	quiet, err := crowdRound(ctx, d, n, rate, long)
	if err != nil {
		return err
	}
	bad, err := st.strangers(ctx, d, few)
	if err != nil {
		return err
	}
	defer bad.Process.Kill()
	loud, err := crowdRound(ctx, d, n, rate, long)
	if err != nil {
		return err
	}
	m, err := d.metrics(ctx)
	if err != nil {
		return err
	}
	st.note(fmt.Sprintf("%d sessions, %.0f turns a second", n, rate),
		"alone %v; beside %d that flood and %d that never read %v: p99 %.2fx; daemon resident %.0f MB",
		quiet, few, few, loud, ratio(loud.quantile(.99), quiet.quantile(.99)), m["process_resident_memory_bytes"]/1e6)
	return nil
}

func crowdRound(ctx context.Context, d *daemon, n int, rate float64, long time.Duration) (*hist, error) {
	all, err := d.sessions(ctx, n, "crowd")
	defer closeAll(all)
	if err != nil {
		return nil, err
	}
	return spread(ctx, all, rate, long)
}
