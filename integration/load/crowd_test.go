//go:build load && linux

package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// crowd measures how long acknowledgements take of a crowd of sessions by itself and while ten flood the daemon and ten ask for
// more than they ever read, by turns.
func crowd(ctx context.Context, st *stage) error {
	n, rounds := of(st, 200, 2000), of(st, 2, 5)
	const few, rate, long = 10, 500., 2 * time.Second
	d, err := st.serve(ctx, filepath.Join(st.dir, "crowd"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(d.data)
	defer d.kill()
	all, err := d.sessions(ctx, n, "crowd")
	defer closeAll(all)
	if err != nil {
		return err
	}
	ps := newPipes(ctx, all)
	defer ps.end()
	var quiet, loud hist
	for range rounds {
		if err := ps.spread(ctx, rate, long, &quiet); err != nil {
			return err
		}
		bad, err := st.strangers(ctx, d, few)
		if err != nil {
			return err
		}
		err = ps.spread(ctx, rate, long, &loud)
		bad.Process.Kill() // what it sent is reset with it
		if err != nil {
			return err
		}
	}
	m, err := d.metrics(ctx)
	if err != nil {
		return err
	}
	st.note(fmt.Sprintf("%d sessions, %.0f turns a second", n, rate),
		"p99 %.2fx beside %d that flood and %d that never read: %v; alone %v; %.0f requests of theirs; daemon resident %.0f MB",
		ratio(loud.quantile(.99), quiet.quantile(.99)), few, few, &loud, &quiet, m["tapedeck_daemon_requests_total"], m["process_resident_memory_bytes"]/1e6)
	return nil
}
