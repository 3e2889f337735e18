package clock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Panic is what Parallel panics with when a branch did.
type Panic struct {
	Value  any    // of the branch's panic
	Stack  []byte // of its goroutine, as debug.Stack has it
	Branch []int  // its path
}

func (p *Panic) Error() string {
	return fmt.Sprintf("panic in branch %v: %v\n\n%s", p.Branch, p.Value, p.Stack)
}

// Unwrap returns the panic's value where that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Parallel runs branches and returns when all have ended: the package comment says how they take turns. The first that fails cancels
// the context of the others, and those not begun by then do not begin. The error is that of the first branch, in their order, that
// failed by itself; ctx's where it was done before, and then no branch begins. A branch's panic comes out of Parallel as a *Panic, its runtime.Goexit (which t.FailNow
// is) as one of the caller, both once every branch has ended.
func (c *Clock) Parallel(ctx context.Context, branches ...func(ctx context.Context) error) error {
	if err := reason(ctx); err != nil || len(branches) == 0 {
		return err
	}
	if parent := c.claim(ctx); parent != nil {
		defer parent.away.Store(false)
		return newFan(ctx, parent.group, parent.path).run(branches)
	}
	return newFan(ctx, &group{clock: c}, nil).run(branches)
}

// A fan is the branches of one Parallel.
type fan struct {
	group  *group
	path   []int // of the caller
	ctx    context.Context
	cancel context.CancelFunc
	caller *waiter
	ends   []end
	left   atomic.Int64
	broken atomic.Int64 // the index of the branch that failed first, and 1
	done   sync.WaitGroup
}

// An end is how a branch ended. One that neither returned nor panicked called runtime.Goexit.
type end struct {
	err      error
	panic    *Panic
	returned bool
}

func newFan(ctx context.Context, g *group, path []int) *fan {
	f := &fan{group: g, path: path}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.caller = newWaiter(context.Background(), 0, path)
	return f
}

func (f *fan) run(branches []func(context.Context) error) error {
	defer f.cancel()
	f.ends = make([]end, len(branches))
	f.left.Store(int64(len(branches)))
	now := f.group.clock.elapsed()
	for i, body := range branches {
		b := &branch{group: f.group, path: append(slices.Clip(slices.Clone(f.path)), i)}
		w := newWaiter(f.ctx, now, b.path)
		f.group.enqueue(w)
		f.done.Go(func() {
			<-w.turn
			f.live(i, b, body)
		})
	}
	f.group.pass()
	<-f.caller.turn
	f.done.Wait()
	return f.result()
}

// live is a branch's goroutine from its first turn on.
func (f *fan) live(i int, b *branch, body func(context.Context) error) {
	e := &f.ends[i]
	defer f.over(i, b)
	defer func() {
		if v := recover(); v != nil {
			e.panic = asPanic(v, b)
		}
	}()
	if e.err = reason(f.ctx); e.err == nil {
		e.err = body(context.WithValue(f.ctx, branchKey{f.group.clock}, b))
	}
	e.returned = true
}

func asPanic(v any, b *branch) *Panic {
	if p, ok := v.(*Panic); ok {
		return p // of a Parallel within
	}
	return &Panic{Value: v, Stack: debug.Stack(), Branch: b.path}
}

// over ends a branch, however it ended: its turn goes on in every case.
func (f *fan) over(i int, b *branch) {
	b.away.Store(true)
	if e := &f.ends[i]; e.err != nil || !e.returned {
		f.broken.CompareAndSwap(0, int64(i)+1)
		f.cancel()
	}
	if f.left.Add(-1) == 0 {
		f.caller.due = f.group.clock.elapsed()
		f.group.enqueue(f.caller)
	}
	f.group.pass()
}

func (f *fan) result() error {
	for _, e := range f.ends {
		if e.panic != nil {
			panic(e.panic)
		}
	}
	for _, e := range f.ends {
		if !e.returned {
			runtime.Goexit()
		}
	}
	for i, e := range f.ends {
		if e.err != nil && (int64(i) == f.broken.Load()-1 || !errors.Is(e.err, context.Canceled)) {
			return e.err
		}
	}
	return nil
}

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
