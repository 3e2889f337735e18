package files

import (
	"cmp"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	bigFile       = 8 << 20 // bytes from which a content is read alone
	progressEvery = 256     // files lie between two calls of a progress
	foundAhead    = 256     // files may be found that no worker has begun
)

// A pool reads files or contents side by side, and counts them.
type pool struct {
	workers  int
	progress func(files int, bytes int64) // nil for nobody
	bytes    atomic.Int64
	big      sync.Mutex // held while a long file is in memory: one at a time

	mu   sync.Mutex
	done int   // guarded by mu, under which progress is called
	err  error // the first failure, which ends the rest; guarded by mu
}

// numWorkers is how many workers there are where nobody says it: one for each processor, at least 2 and at most 4.
func numWorkers() int { return min(max(runtime.GOMAXPROCS(0), 2), 4) }

// each does do for whatever give hands to its argument; worker, from 0, says whose it is. It owns its workers, and returns
// when give and all of them have ended. After a failure give comes to its end, and nothing more is done.
func each[T any](p *pool, give func(take func(T)) error, do func(worker int, item T) error) error {
	todo := make(chan T, foundAhead)
	var wg sync.WaitGroup
	for worker := range p.workers {
		wg.Go(func() {
			for item := range todo {
				if !p.finish(do(worker, item)) {
					break
				}
			}
			for range todo {
				continue
			}
		})
	}
	err := give(func(item T) { todo <- item })
	close(todo)
	wg.Wait()
	if err = cmp.Or(err, p.err); err != nil {
		return err
	}
	if p.progress != nil {
		p.progress(p.done, p.bytes.Load())
	}
	return nil
}

// finish counts one file and reports whether to go on.
func (p *pool) finish(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.done++
	if p.err == nil && p.progress != nil && p.done%progressEvery == 0 {
		p.progress(p.done, p.bytes.Load())
	}
	return p.err == nil
}
