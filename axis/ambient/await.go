package ambient

import (
	"context"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// Bounds of how long an answer waits for what its process did before it came.
const (
	quietLeast  = 20 * time.Millisecond  // after each step, and four times what that took
	quietMost   = 100 * time.Millisecond // the same: a spinner turns for as long as nobody answers
	quietAnswer = 500 * time.Millisecond // since anything came, for an answer that came before: it has to be asked for, and to reach us
	awaitMost   = 250 * time.Millisecond // in all, for steps of a process that has nothing to do
	busyMost    = 2 * time.Second        // in all, for answers, and for steps of a process that is at work: beside others it may take long
	vainMost    = 8                      // waits in vain of one process: more say that what it does is a matter of moments
	// vainOfThreadsMost is the same of one process, of answers to its threads: it may have its own time meanwhile.
	vainOfThreadsMost = 2
	vainInAll         = 64 // the same of a run: of another program, of which each process has others
)

// Await waits, before the answer of a recorded exchange is given to a process, until that has read the times that it had read before,
// and has had the answers that it had had. A replay answers at once: what a program does beside a request, it would do after its answer,
// and in another order. What does not come from a process that is not at work is waited for once. begins is told when
// the answer reaches the process, held while that is held up until other answers have: one of those that wait here, perhaps. The error is ctx's.
func (g *Given) Await(ctx context.Context, arrival uint64) (begins func(), held func(bool), err error) {
	if err := g.await(ctx, arrival, &g.vain, vainMost); err != nil {
		return nil, nil, err
	}
	if of := g.Process; of != nil {
		if err := of.await(ctx, arrival, &of.vainOfThreads, vainOfThreadsMost); err != nil {
			return nil, nil, err
		}
	}
	comes := func(n int64) {
		for of := g; of != nil; of = of.Process {
			of.coming.Add(n)
		}
	}
	comes(1)
	return func() { comes(-1) }, func(on bool) {
		if g.AtOnce {
			g.clock.hold(arrival, on)
		}
		if on {
			comes(-1)
		} else {
			comes(1)
		}
	}, nil
}

// busy reports whether the process has something to do, or is about to.
func (g *Given) busy() bool { return g.coming.Load() > 0 || g.AtWork != nil && g.AtWork() }

// await waits for what one process, or thread, did, unless so many have waited for it in vain.
func (g *Given) await(ctx context.Context, arrival uint64, vain *int, most int) error {
	mark := slices.Index(g.marks, arrival)
	if mark < 0 {
		return nil
	}
	begun := time.Now()
	until := begun.Add(awaitMost)
	return lane.Hold(ctx, nil, func() (<-chan struct{}, time.Duration) {
		changed := g.clock.next() // before it is looked what is missing: what comes meanwhile wakes too
		g.mu.Lock()
		defer g.mu.Unlock()
		quiet, missing := g.missing(mark)
		if !missing || *vain >= most {
			return nil, 0
		}
		if quiet != quietAnswer {
			quiet = min(quiet, time.Until(until))
		}
		return changed, min(quiet, time.Until(begun.Add(busyMost)))
	}, func() {
		if g.busy() && time.Since(begun) < busyMost {
			until = time.Now().Add(quietMost)
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waited = max(g.waited, mark+1)
		*vain++
		if vain == &g.vain {
			g.clock.vain.Add(1)
		}
	})
}

// missing reports whether something that came before a mark has not come, and how long that is waited for. mu is held.
func (g *Given) missing(mark int) (quiet time.Duration, missing bool) {
	if _, left := g.clock.leftBehind(); left || mark < g.waited || g.clock.vain.Load() >= vainInAll {
		return 0, false
	}
	g.resume()
	come, first := min(g.window, mark), g.begin[max(g.window, g.waited)]
	held, free := g.clock.missing(g.marks[come:mark]) // what is held up may be until this one has ended
	for i := first; i < g.begin[come+held+1]; i++ {
		if r := &g.reads[i]; !r.given {
			return quietFor(r.at - g.before(i)), true
		}
	}
	return quietAnswer, free && g.waited < mark
}

// before is the time that was read before the one at i; that itself where there is none.
func (g *Given) before(i int) int64 { return g.reads[max(i-1, 0)].at }

// quietFor is how long one waits for a step that took so many ns while recording.
func quietFor(took int64) time.Duration {
	return min(quietLeast+4*max(time.Duration(took), 0), quietMost)
}
