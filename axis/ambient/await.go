package ambient

import (
	"context"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// Bounds of how long an answer waits for what its process did before it came.
const (
	quietLeast = 20 * time.Millisecond  // after each step, and four times what that took
	quietMost  = 100 * time.Millisecond // the same: a spinner turns for as long as nobody answers
	awaitMost  = 250 * time.Millisecond // in all
	busyMost   = time.Second            // the same, of a process that is at work meanwhile: a machine that has much to do takes longer
	freshFrom  = 32                     // reads of a process, after which
	lookEach   = 4 * time.Millisecond   // one looks whether a process is at work
	stepsMost  = 5 * time.Second        // for all steps of one process
	vainMost   = 8                      // waits in vain of one process: more say that what it does is a matter of moments
	vainInAll  = 64                     // the same of a run: of another program, of which each process has others
)

// Await waits, before the answer of a recorded exchange is given to a process, until that has read the times that it had read before,
// and has had the answers that it had had. A replay answers at once: what a program does beside a request, it would do after its answer,
// and in another order. What does not come is waited for once. The error is ctx's.
func (g *Given) Await(ctx context.Context, arrival uint64) error {
	mark := slices.Index(g.marks, arrival)
	if mark < 0 {
		return nil
	}
	return g.await(ctx, position{g.begin[mark+1], mark})
}

// AwaitPiece is Await before the nth chunk of an answer is given.
func (g *Given) AwaitPiece(ctx context.Context, arrival uint64, n int) error {
	return g.awaitStep(ctx, pieceOf(arrival, n))
}

// AwaitEnd is Await before the process can learn that a child has ended.
func (g *Given) AwaitEnd(ctx context.Context, child uint64) error {
	return g.awaitStep(ctx, endOf(child))
}

// awaitStep is await for a step, if that is known and not too much time was spent on others.
func (g *Given) awaitStep(ctx context.Context, step uint64) error {
	at, known := g.steps[step]
	g.mu.Lock()
	known = known && g.spent < stepsMost
	g.mu.Unlock()
	if !known {
		return nil
	}
	begun := time.Now()
	err := g.await(ctx, at)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spent += time.Since(begun)
	return err
}

// await waits until the process has come to a position.
func (g *Given) await(ctx context.Context, at position) error {
	w := waiting{g: g, at: at, begun: time.Now()}
	return lane.Hold(ctx, nil, func() (<-chan struct{}, time.Duration) {
		g.mu.Lock()
		defer g.mu.Unlock()
		quiet, missing := w.missing()
		if !missing {
			return nil, 0
		}
		g.clock.mu.Lock()
		defer g.clock.mu.Unlock()
		return g.clock.changed.Next(), quiet
	}, w.giveUp)
}

// A waiting is for a process to come to a position.
type waiting struct {
	g     *Given
	at    position
	from  int // all readings before have come, or are not waited for
	begun time.Time
	done  uint64 // when it was looked last
	looks int
}

// giveUp has what is missing be waited for no more, unless the process is about to do it.
func (w *waiting) giveUp() {
	g, rests := w.g, false
	if w.looks++; g.Work != nil {
		done, busy := g.Work()
		rests = w.looks > 1 && !busy && done == w.done
		w.done = done
		if !rests && time.Since(w.begun) < busyMost {
			return
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := w.from; i < w.at.reads; i++ {
		if r := &g.reads[i]; !r.given {
			g.off[r.place]++
		}
	}
	g.waited = position{max(g.waited.reads, w.at.reads), max(g.waited.window, w.at.window+1)}
	if !rests {
		g.vain++
		g.clock.vain.Add(1)
	}
}

// missing reports whether something that came before the position has not come, and after how long one looks again. g.mu is held.
func (w *waiting) missing() (quiet time.Duration, missing bool) {
	g := w.g
	if _, left := g.clock.leftBehind(); left || g.vain >= vainMost || g.clock.vain.Load() >= vainInAll {
		return 0, false
	}
	g.resume()
	left := time.Until(w.begun.Add(awaitMost))
	for w.from = max(w.from, g.begin[g.window], g.waited.reads); w.from < w.at.reads; w.from++ {
		switch r := &g.reads[w.from]; {
		case r.given || g.loose(r.place):
		case g.Work != nil:
			return lookEach, true
		default:
			return min(left, quietFor(r.at-g.before(w.from))), true
		}
	}
	return min(left, quietLeast), g.window < w.at.window && g.waited.window < w.at.window
}

// loose reports whether what is read at a place is a matter of moments: more or less often than it was. Of a new one nobody knows, and most
// come to it by chance once the program has begun.
func (g *Given) loose(place int) bool {
	fresh := g.taken[place] == 0 && (g.Several || g.all > freshFrom)
	return fresh || 8*g.off[place] > g.taken[place]
}

// before is the time that was read before the one at i; that itself where there is none.
func (g *Given) before(i int) int64 { return g.reads[max(i-1, 0)].at }

// quietFor is how long one waits for a step that took so many ns while recording.
func quietFor(took int64) time.Duration {
	return min(quietLeast+4*max(time.Duration(took), 0), quietMost)
}
