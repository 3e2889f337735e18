package clock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A branch is one function of a Parallel.
type branch struct {
	group *group
	path  []int // of indexes, from the outermost Parallel
	// away: it waits, or is over. A goroutine that uses the context of such a branch is not the branch itself.
	away atomic.Bool
}

type branchKey struct{ clock *Clock }

// claim returns the branch of ctx, which is away from then on, until it has its turn again. Nil: the caller is nobody's branch.
func (c *Clock) claim(ctx context.Context) *branch {
	b, _ := ctx.Value(branchKey{c}).(*branch)
	if b == nil || !b.away.CompareAndSwap(false, true) {
		return nil
	}
	return b
}

// A group is the branches of one outermost Parallel and of all within it. They share one turn, which somebody always has: a branch
// that runs, the caller that starts them, or, with a real clock, nobody while all wait.
type group struct {
	clock *Clock

	mu      sync.Mutex
	waiting []*waiter // paused: whoever waits; real: whoever could go on
	free    int       // turns that nobody took, of a real clock
}

// A waiter wants the turn.
type waiter struct {
	ctx  context.Context
	due  time.Duration
	path []int
	turn chan struct{}
}

func newWaiter(ctx context.Context, due time.Duration, path []int) *waiter {
	return &waiter{ctx: ctx, due: due, path: path, turn: make(chan struct{}, 1)}
}

// when is the due time: of one whose context is done, now.
func (w *waiter) when(now time.Duration) time.Duration {
	if w.due > now && w.ctx.Err() != nil {
		return now
	}
	return w.due
}

// waitTurn gives the turn away until due, on a paused clock, or until ctx is done.
func (b *branch) waitTurn(ctx context.Context, due time.Duration) {
	w := newWaiter(ctx, due, b.path)
	b.group.enqueue(w)
	b.group.pass()
	<-w.turn
	b.away.Store(false)
}

// retake takes the turn back that was passed on, as one that is due since due.
func (b *branch) retake(due time.Duration) {
	w := newWaiter(context.Background(), due, b.path)
	b.group.enqueue(w)
	<-w.turn
	b.away.Store(false)
}

// enqueue makes w wait. With a turn that nobody has it need not.
func (g *group) enqueue(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		w.turn <- struct{}{}
		return
	}
	g.waiting = append(g.waiting, w)
}

// pass hands on the caller's turn.
func (g *group) pass() {
	for !g.handOn() {
	}
}

// handOn says false where the clock has to be moved further first.
func (g *group) handOn() bool {
	g.mu.Lock()
	now := g.clock.elapsed()
	i, due := g.first(now)
	if i >= 0 && due > now && !g.clock.real {
		g.mu.Unlock()
		g.clock.step(due)
		return false
	}
	defer g.mu.Unlock()
	if i < 0 {
		g.free++
		return true
	}
	w := g.waiting[i]
	g.waiting = slices.Delete(g.waiting, i, i+1)
	w.turn <- struct{}{}
	return true
}

// first is called under mu. It returns who is next and when that is due, -1 where nobody waits.
func (g *group) first(now time.Duration) (at int, due time.Duration) {
	at = -1
	for i, w := range g.waiting {
		when := w.when(now)
		if at < 0 || when < due || when == due && slices.Compare(w.path, g.waiting[at].path) < 0 {
			at, due = i, when
		}
	}
	return at, due
}
