//go:build load && linux

package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// sessions connects n sessions, each an agent of its own with a run.
func (d *daemon) sessions(ctx context.Context, n int, name string) ([]*session, error) {
	all := make([]*session, n)
	err := side(n, 64, func(i int) error {
		s, err := d.dial(ctx, fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			return fmt.Errorf("session %d: %w", i, err)
		}
		all[i] = s
		return s.start(ctx, "")
	})
	return all, err
}

// side does n things, at most `most` of them at once, and returns the first error.
func side(n, most int, f func(i int) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	slots := make(chan struct{}, most)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			if err := f(i); err != nil {
				once.Do(func() { first = err })
			}
			<-slots
		})
	}
	wg.Wait()
	return first
}

func closeAll(all []*session) {
	for _, s := range all {
		if s != nil {
			s.close()
		}
	}
}

// turns has every session record turns as fast as it is acknowledged, then the log alone take blocks of the size that the
// daemon's had, then a file a session.
func turns(ctx context.Context, st *stage) error {
	n, long := of(st, 200, 2000), of(st, 2*time.Second, 5*time.Second)
	for _, size := range []int{1, 8, 64} {
		rate, block, err := turnsOf(ctx, st, st.serve, n, size, long)
		if err != nil {
			return err
		}
		bare, _, err := turnsOf(ctx, st, st.bare, n, size, long)
		if err != nil {
			return err
		}
		alone, err := logAlone(filepath.Join(st.dir, fmt.Sprintf("alone-%d", size)), n, size, block, long)
		if err != nil {
			return err
		}
		files, err := fileEach(filepath.Join(st.dir, fmt.Sprintf("files-%d", size)), n, size, long)
		if err != nil {
			return err
		}
		st.note(fmt.Sprintf("%d sessions, %d turns a call", n, size),
			"%.0f turns/s; %.2fx of a bare server (%.0f/s); %.2fx of the log alone with blocks of %.0f calls (%.0f/s); %.1fx of a file a session (%.0f/s)",
			rate, rate/bare, bare, rate/alone, block, alone, rate/files, files)
	}
	return nil
}

// A server is what starts a daemon over a directory, or what stands in its place.
type server func(ctx context.Context, data string) (*daemon, error)

// turnsOf returns how many turns a second a daemon acknowledged, and how many calls shared one block of the log, where it says so.
func turnsOf(ctx context.Context, st *stage, serve server, n, size int, long time.Duration) (rate, block float64, err error) {
	d, err := serve(ctx, filepath.Join(st.dir, fmt.Sprintf("turns-%d", size)))
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(d.data)
	defer d.kill()
	all, err := d.sessions(ctx, n, "turns")
	defer closeAll(all)
	if err != nil {
		return 0, 0, err
	}
	before, err := d.metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	acked, took, err := flood(ctx, all, batchOf(size), size, long)
	if err != nil {
		return 0, 0, err
	}
	after, err := d.metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	calls := float64(acked) / float64(size)
	return float64(acked) / took.Seconds(), calls / max(1, after[metricBlocks]-before[metricBlocks]), nil
}

// metricBlocks counts the blocks that the daemon's log has synced.
const metricBlocks = "tapedeck_store_log_blocks_total"

// flood has every session record turns, one call after the other; a run that is full is followed by another.
func flood(ctx context.Context, all []*session, batch string, size int, long time.Duration) (acked int64, took time.Duration, err error) {
	const most = 2000 // turns a run
	var count atomic.Int64
	begun := time.Now()
	end := begun.Add(long)
	err = side(len(all), len(all), func(i int) error {
		s := all[i]
		for kept := size; time.Now().Before(end) && ctx.Err() == nil; kept += size {
			if kept > most {
				if err := s.start(ctx, ""); err != nil {
					return err
				}
				kept = size
			}
			if _, err := s.record(ctx, batch); err != nil {
				return err
			}
			count.Add(int64(size))
		}
		return nil
	})
	return count.Load(), time.Since(begun), err
}

// fileEach is a file a session with its own fsync: turns a second.
func fileEach(dir string, n, size int, long time.Duration) (float64, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	line := []byte(`{"record":"turn","index":0,` + turn("load")[1:] + "\n")
	lines := make([]byte, 0, size*len(line))
	for range size {
		lines = append(lines, line...)
	}
	var count atomic.Int64
	begun := time.Now()
	end := begun.Add(long)
	err := side(n, n, func(i int) error {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		defer f.Close()
		for time.Now().Before(end) {
			if _, err := f.Write(lines); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
			count.Add(int64(size))
		}
		return nil
	})
	return float64(count.Load()) / time.Since(begun).Seconds(), err
}
