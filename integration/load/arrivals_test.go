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

// arrivals has turns arrive at given rates, at the daemon and at the log alone.
func arrivals(ctx context.Context, st *stage) error {
	n, long := of(st, 200, 2000), of(st, 3*time.Second, 20*time.Second)
	for _, rate := range []float64{500, 2000, 5000} {
		d, err := st.serve(ctx, filepath.Join(st.dir, fmt.Sprintf("arrivals-%.0f", rate)))
		if err != nil {
			return err
		}
		h, err := arrive(ctx, d, n, rate, long)
		d.kill()
		os.RemoveAll(d.data)
		if err != nil {
			return err
		}
		alone, err := arriveAlone(ctx, filepath.Join(st.dir, fmt.Sprintf("arrivals-alone-%.0f", rate)), rate, long)
		if err != nil {
			return err
		}
		st.note(fmt.Sprintf("%d sessions, %.0f turns a second", n, rate), "%v; the log alone %v; p99 %.1fx",
			h, alone, ratio(h.quantile(.99), alone.quantile(.99)))
	}
	return nil
}

func arrive(ctx context.Context, d *daemon, n int, rate float64, long time.Duration) (*hist, error) {
	all, err := d.sessions(ctx, n, "arrivals")
	defer closeAll(all)
	if err != nil {
		return nil, err
	}
	return spread(ctx, all, rate, long)
}

// arriveAlone has the same arrivals meet the log alone.
func arriveAlone(ctx context.Context, dir string, rate float64, long time.Duration) (*hist, error) {
	l, err := seglog.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	h := new(hist)
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
	return h, l.Close(ctx)
}
