//go:build load && linux

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// due calls f at the moments of a Poisson process of so many a second, and never waits for it: f must not block.
func due(ctx context.Context, perSecond float64, long time.Duration, f func(i int, at time.Time)) {
	r := rand.New(rand.NewPCG(1, 2)) // the same arrivals each time
	next := time.Now()
	end := next.Add(long)
	for i := 0; next.Before(end) && ctx.Err() == nil; i++ {
		if wait := time.Until(next); wait > 0 {
			time.Sleep(wait)
		}
		f(i, next)
		next = next.Add(time.Duration(r.ExpFloat64() / perSecond * float64(time.Second)))
	}
}

// arrivals has turns arrive at given rates, at the daemon, at a bare server and at the log alone, by turns: a moment in which the
// machine is busy is all of theirs.
func arrivals(ctx context.Context, st *stage) error {
	n, rounds := of(st, 200, 2000), of(st, 2, 5)
	const long = 1500 * time.Millisecond
	for _, rate := range []float64{500, 2000, 5000} {
		var ours, bare, alone hist
		for range rounds {
			if err := arrive(ctx, st, st.serve, n, rate, long, &ours); err != nil {
				return err
			}
			if err := arrive(ctx, st, st.bare, n, rate, long, &bare); err != nil {
				return err
			}
			if err := arriveAlone(ctx, filepath.Join(st.dir, fmt.Sprintf("arrivals-alone-%.0f", rate)), rate, long, &alone); err != nil {
				return err
			}
		}
		p99 := ours.quantile(.99)
		st.note(fmt.Sprintf("%d sessions, %.0f turns a second", n, rate), "p99 %.2fx of a bare server, %.2fx of the log alone: %v; %v; %v",
			ratio(p99, bare.quantile(.99)), ratio(p99, alone.quantile(.99)), &ours, &bare, &alone)
	}
	return nil
}

func arrive(ctx context.Context, st *stage, serve server, n int, rate float64, long time.Duration, h *hist) error {
	d, err := serve(ctx, filepath.Join(st.dir, fmt.Sprintf("arrivals-%.0f", rate)))
	if err != nil {
		return err
	}
	defer os.RemoveAll(d.data)
	defer d.kill()
	all, err := d.sessions(ctx, n, "arrivals")
	defer closeAll(all)
	if err != nil {
		return err
	}
	ps := newPipes(ctx, all)
	defer ps.end()
	return ps.spread(ctx, rate, long, h)
}

// arriveAlone has the same arrivals meet the log alone.
func arriveAlone(ctx context.Context, dir string, rate float64, long time.Duration, h *hist) error {
	l, err := seglog.Open(dir, nil)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var wg sync.WaitGroup
	b := record(1)
	due(ctx, rate, long, func(_ int, at time.Time) {
		wg.Add(1)
		err := l.Append(ctx, 0, b, func(seglog.Pos, error) {
			h.add(time.Since(at))
			wg.Done()
		})
		if err != nil {
			wg.Done()
		}
	})
	wg.Wait()
	return l.Close(ctx)
}
