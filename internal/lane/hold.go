package lane

import (
	"context"
	"sync"
	"time"
)

// A Clock tells the time and wakes who waits.
type Clock interface {
	Now() time.Time
	// Timer sends once d has passed, unless stop was called before.
	Timer(d time.Duration) (c <-chan time.Time, stop func())
}

// realClock is the clock of the machine.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// clockOr is c, or the clock of the machine for nil.
func clockOr(c Clock) Clock {
	if c == nil {
		return realClock{}
	}
	return c
}

// A Change wakes those that wait for something to happen. Its zero value works; who uses it holds the lock of what may happen.
type Change struct{ next chan struct{} }

// Next is closed when something happens.
func (c *Change) Next() <-chan struct{} {
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// Happened wakes who waits.
func (c *Change) Happened() {
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// Forever is the limit of a wait that nothing ends but what is waited for.
const Forever time.Duration = -1

// Hold waits until nothing is missing. missing returns what is closed when that may have changed, nil where nothing is missing any
// more, and how much longer that may take at most; giveUp is called when it took longer, and must make it less. The error is ctx's.
func Hold(ctx context.Context, clock Clock, missing func() (changed <-chan struct{}, left time.Duration), giveUp func()) error {
	for {
		changed, left := missing()
		if changed == nil {
			return nil
		}
		late, err := wait(ctx, clock, changed, left)
		if err != nil {
			return err
		}
		if late {
			giveUp()
		}
	}
}

// wait waits for changed, at most for left; late says that it took longer. The error is ctx's.
func wait(ctx context.Context, clock Clock, changed <-chan struct{}, left time.Duration) (late bool, err error) {
	var limit <-chan time.Time
	if left != Forever {
		c, stop := clockOr(clock).Timer(max(left, 0))
		defer stop()
		limit = c
	}
	select {
	case <-changed:
		return false, nil
	case <-limit:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Pause waits for d. The error is ctx's, where that is done before.
func Pause(ctx context.Context, clock Clock, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	_, err := wait(ctx, clock, nil, d)
	return err
}

// Between is the time from one moment of a recording to another, both in ms; 0 where the other came first.
func Between(from, to int64) time.Duration { return time.Duration(max(to-from, 0)) * time.Millisecond }

// A Gate holds up what is to come until what came before it while recording has come again. E names what may happen. It may be used by
// several goroutines at once.
type Gate[E comparable] struct {
	clock Clock
	slack time.Duration

	mu     sync.Mutex // guards what follows
	at     map[E]time.Time
	gone   map[E]bool          // was waited for in vain, and is no more
	vain   map[string]int      // how often who was to bring something was waited for in vain
	waited map[E]chan struct{} // what somebody waits for: it wakes those alone
	last   time.Time           // when something happened last
	open   bool
	missed []string
}

// A Condition is what has to happen first, and how long it is waited for: For, from when From has happened, and before that from Since. One
// whose wait has not begun so counts for nothing.
type Condition[E comparable] struct {
	What, From E
	Since      time.Time
	For        time.Duration
	// Stretch has the wait go on while something happens, for the slack of the gate after it, but not beyond this; zero is not at all.
	Stretch time.Time
	// Chances is how many waits in vain end no more than themselves. By, where it is not empty, brings What, and is waited for no more after so many
	// of them. Without any the first one opens the gate for good, and Why is kept.
	Chances int
	By, Why string
	// React is how long after it what waits still waits: who waits for it is to have the time to act on it.
	React time.Duration
}

// NewGate returns a Gate. A nil clock is the real one.
func NewGate[E comparable](slack time.Duration, clock Clock) *Gate[E] {
	return &Gate[E]{clock: clockOr(clock), slack: slack, at: make(map[E]time.Time), gone: make(map[E]bool), vain: make(map[string]int), waited: make(map[E]chan struct{})}
}

// Happened says that something has happened. Only the first time counts.
func (g *Gate[E]) Happened(what E) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.at[what].IsZero() {
		return
	}
	g.last = g.clock.Now()
	g.at[what] = g.last
	g.wake(what)
}

// wake wakes who waits for something. mu is held.
func (g *Gate[E]) wake(what E) {
	if waited := g.waited[what]; waited != nil {
		close(waited)
		delete(g.waited, what)
	}
}

// Open ends all waiting.
func (g *Gate[E]) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release()
}

// release is Open. mu is held.
func (g *Gate[E]) release() {
	g.open = true
	g.wakeAll()
}

// wakeAll wakes all who wait. mu is held.
func (g *Gate[E]) wakeAll() {
	for what := range g.waited {
		g.wake(what)
	}
}

// Missed says why waits were in vain.
func (g *Gate[E]) Missed() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.missed...)
}

// Since is how long ago something happened; Forever where it has not, and where the gate is open.
func (g *Gate[E]) Since(what E) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open || g.at[what].IsZero() {
		return Forever
	}
	return g.clock.Now().Sub(g.at[what])
}

// Past reports whether nobody waits for something any more: it has happened, or all is open.
func (g *Gate[E]) Past(what E) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open || !g.at[what].IsZero()
}

// Await waits until all has happened, in this order, and for what is left of the time to act on it. The error is ctx's.
func (g *Gate[E]) Await(ctx context.Context, all []Condition[E]) error {
	left := all // what has passed at its front is not looked at again
	err := Hold(ctx, g.clock, func() (<-chan struct{}, time.Duration) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for len(left) > 0 && g.passed(&left[0]) {
			left = left[1:]
		}
		c := g.missing(left)
		if c == nil {
			return nil, 0
		}
		if g.waited[c.What] == nil {
			g.waited[c.What] = make(chan struct{})
		}
		return g.waited[c.What], max(g.limit(c).Sub(g.clock.Now()), 0)
	}, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if c := g.missing(left); c != nil { // what has happened meanwhile may give it more time
			g.late(c)
		}
	})
	if err != nil {
		return err
	}
	return Pause(ctx, g.clock, g.reaction(all))
}

// Holds reports whether something is missing.
func (g *Gate[E]) Holds(all []Condition[E]) bool { return g.Missing(all) != nil }

// Missing is the first that is missing; nil for none.
func (g *Gate[E]) Missing(all []Condition[E]) *Condition[E] {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.missing(all)
}

// missing is the first that is missing; nil for none. mu is held.
func (g *Gate[E]) missing(all []Condition[E]) *Condition[E] {
	for i := range all {
		if c := &all[i]; !g.passed(c) && !g.since(c).IsZero() {
			return c
		}
	}
	return nil
}

// passed reports whether nobody waits for something any more. mu is held.
func (g *Gate[E]) passed(c *Condition[E]) bool {
	return g.open || !g.at[c.What].IsZero() || g.gone[c.What] || c.By != "" && g.vain[c.By] >= c.Chances
}

// since is from when on something is waited for. mu is held.
func (g *Gate[E]) since(c *Condition[E]) time.Time {
	if from := g.at[c.From]; !from.IsZero() {
		return from
	}
	return c.Since
}

// reaction is what is left of the time to act on what has happened.
func (g *Gate[E]) reaction(all []Condition[E]) (left time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range all {
		if at := g.at[c.What]; c.React > 0 && !g.open && !at.IsZero() {
			left = max(left, c.React-g.clock.Now().Sub(at))
		}
	}
	return left
}

// limit is until when something is waited for, as things are. mu is held.
func (g *Gate[E]) limit(c *Condition[E]) time.Time {
	still := g.last.Add(g.slack)
	if c.Stretch.Before(still) {
		still = c.Stretch
	}
	return later(g.since(c).Add(c.For), still)
}

// late gives up what is missing, where it is late. mu is held.
func (g *Gate[E]) late(c *Condition[E]) {
	switch {
	case g.limit(c).After(g.clock.Now()):
	case c.Chances > 0:
		g.gone[c.What] = true
		g.vain[c.By]++
		g.wakeAll()
	default:
		if c.Why != "" {
			g.missed = append(g.missed, c.Why)
		}
		g.release()
	}
}
