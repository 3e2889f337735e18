//go:build load && linux

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// pipes are sessions that record turns at given arrivals.
type pipes []*pipe

func newPipes(ctx context.Context, all []*session) pipes {
	ps := make(pipes, len(all))
	for i, s := range all {
		ps[i] = newPipe(ctx, s)
	}
	return ps
}

// spread sends single turns at given arrivals, each on a session drawn by lot, and adds to h how long after its arrival each was
// acknowledged.
func (ps pipes) spread(ctx context.Context, rate float64, long time.Duration, h *hist) error {
	for _, p := range ps {
		p.h = h
	}
	r := rand.New(rand.NewPCG(3, 4))
	due(ctx, rate, long, func(_ int, at time.Time) { ps[r.IntN(len(ps))].send(at) })
	var first error
	for _, p := range ps {
		if err := p.settle(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// end ends them. The sessions are of no use afterwards.
func (ps pipes) end() {
	for _, p := range ps {
		close(p.queue)
		p.stop()
		p.wg.Wait()
	}
}

// A pipe records turns on a session without waiting for one reply before the next request. It owns two goroutines, which end
// ends.
type pipe struct {
	s      *session
	h      *hist // set while nothing is under way
	params string
	queue  chan time.Time // arrivals
	wg     sync.WaitGroup
	stop   context.CancelFunc

	mu      sync.Mutex
	changed *sync.Cond
	due     int               // replies
	pending map[int]time.Time // by id
	err     error
}

func newPipe(ctx context.Context, s *session) *pipe {
	p := &pipe{s: s, params: s.batch(batchOf(1)), queue: make(chan time.Time, 4096), pending: map[int]time.Time{}}
	p.changed = sync.NewCond(&p.mu)
	reading, stop := context.WithCancel(ctx)
	p.stop = stop
	p.wg.Go(func() { p.write(ctx) })
	p.wg.Go(func() { p.read(reading) })
	return p
}

// send has a turn sent as soon as can be, and does not wait.
func (p *pipe) send(at time.Time) {
	p.mu.Lock()
	p.due++
	p.mu.Unlock()
	select {
	case p.queue <- at:
	default:
		p.fail(fmt.Errorf("%d requests wait to be sent", cap(p.queue)))
	}
}

func (p *pipe) write(ctx context.Context) {
	for at := range p.queue {
		p.s.next++
		p.mu.Lock()
		p.pending[p.s.next] = at
		p.mu.Unlock()
		if err := p.s.write(ctx, p.s.next, "runs.record_turns", p.params); err != nil {
			p.fail(err)
			return
		}
	}
}

func (p *pipe) read(ctx context.Context) {
	for {
		r, err := p.s.read(ctx)
		if err == nil && r.Error != nil {
			err = fmt.Errorf("%d %s", r.Error.Code, r.Error.Message)
		}
		if err != nil {
			if ctx.Err() == nil {
				p.fail(err)
			}
			return
		}
		p.mu.Lock()
		if at, ok := p.pending[*r.ID]; ok {
			p.h.add(time.Since(at))
			delete(p.pending, *r.ID)
			p.due--
			p.changed.Broadcast()
		}
		p.mu.Unlock()
	}
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = fmt.Errorf("%s: %w", p.s.agent, err)
	}
	p.changed.Broadcast()
}

// settle waits for the replies that are still due.
func (p *pipe) settle() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.due > 0 {
		p.changed.Wait()
	}
	return p.err
}
