//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
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
	quiet, err := crowdRound(ctx, d, n, rate, long)
	if err != nil {
		return err
	}
	floods, err := d.sessions(ctx, few, "floods")
	defer closeAll(floods)
	if err != nil {
		return err
	}
	deaf, err := d.sessions(ctx, few, "deaf")
	defer closeAll(deaf)
	if err != nil {
		return err
	}
	ctxBad, stop := context.WithCancel(ctx)
	defer stop()
	var flooded, asked atomic.Int64
	for i := range few {
		go floodPipelined(ctxBad, floods[i], &flooded) // ends with ctxBad
		go neverRead(ctxBad, deaf[i], &asked)          // likewise
	}
	loud, err := crowdRound(ctx, d, n, rate, long)
	if err != nil {
		return err
	}
	stop()
	m, err := d.metrics(ctx)
	if err != nil {
		return err
	}
	st.note("crowd", fmt.Sprintf("%d sessions, %.0f turns a second", n, rate),
		"alone %v; beside %d that flood (%d requests) and %d that never read (%d requests) %v: p99 %.2fx; daemon resident %.0f MB",
		quiet, few, flooded.Load(), few, asked.Load(), loud, ratio(loud.quantile(.99), quiet.quantile(.99)), m["process_resident_memory_bytes"]/1e6)
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

// floodPipelined sends requests as fast as the daemon takes them, and reads the replies.
func floodPipelined(ctx context.Context, s *session, count *atomic.Int64) {
	go func() {
		for {
			if _, err := s.read(ctx); err != nil {
				return
			}
		}
	}()
	for i := 1_000_000; ctx.Err() == nil; i++ {
		if s.write(ctx, i, "state.set", `{"key":"k","value":"`+turnText+`"}`) != nil {
			return
		}
		count.Add(1)
	}
}

// neverRead asks for a run's trace again and again and takes no answer.
func neverRead(ctx context.Context, s *session, count *atomic.Int64) {
	for i := 1_000_000; ctx.Err() == nil; i++ {
		if s.write(ctx, i, "runs.get_trace", `{"run_id":"`+s.run+`"}`) != nil {
			return
		}
		count.Add(1)
	}
}

// turnText is text as long as an output.
var turnText = func() string {
	b := make([]byte, 512)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}()
