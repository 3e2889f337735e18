package seal

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// smallWork is what is hashed faster than goroutines are started, in bytes.
const smallWork = 256 << 10

// pipeline gives what produce yields to work, on as many goroutines as there are processors, and what came of it to consume,
// in the order of produce. produce runs on a goroutine of its own, consume on the caller's; all have ended when it returns.
// Three jobs a processor are under way at most, so memory is bounded. Where the work is small (bytes) all is done by the caller.
func pipeline[J any](ctx context.Context, bytes int64, produce func(yield func(J) error) error, work func(J), consume func(J) error) error {
	if bytes < smallWork {
		return produce(func(j J) error {
			work(j)
			return errors.Join(ctx.Err(), consume(j))
		})
	}
	type item struct {
		job  J
		done chan struct{}
	}
	n := runtime.GOMAXPROCS(0)
	todo, order := make(chan *item, n), make(chan *item, 2*n)
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	var produced error // read when order is closed
	all.Go(func() {
		defer close(order)
		defer close(todo)
		produced = produce(func(j J) error {
			it := &item{job: j, done: make(chan struct{})}
			for _, queue := range []chan *item{order, todo} {
				select {
				case queue <- it:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	})
	for range n {
		all.Go(func() {
			for it := range todo {
				work(it.job)
				close(it.done)
			}
		})
	}
	err := func() error {
		for it := range order {
			select {
			case <-it.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := consume(it.job); err != nil {
				return err
			}
		}
		return produced
	}()
	stop()
	all.Wait()
	return err
}
