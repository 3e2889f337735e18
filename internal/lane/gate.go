package lane

import (
	"context"
	"sync"
	"time"
)

// A Gate holds up what is to come until what came before it while recording has come again. E names what may happen. A wait that is in
// vain opens the gate for good. It may be used by several goroutines at once.
type Gate[E comparable] struct {
	clock Clock
	slack time.Duration

	mu     sync.Mutex // guards what follows
	at     map[E]time.Time
	waited map[E]chan struct{} // what somebody waits for: it wakes those alone
	last   time.Time           // when something happened last
	open   bool
	missed []string
}

// A Missing is what has to happen first.
type Missing[E comparable] struct {
	What  E
	Until time.Time
	// Stretch has the wait go on while something happens, for the slack of the gate after it, but not beyond this; zero is not at all.
	Stretch time.Time
	// Excused has what does not come in time count as if it had come. Else that opens the gate, and Why is kept.
	Excused bool
	Why     string
}

// NewGate returns a Gate. A nil clock is the real one.
func NewGate[E comparable](slack time.Duration, clock Clock) *Gate[E] {
	return &Gate[E]{clock: clockOr(clock), slack: slack, at: make(map[E]time.Time), waited: make(map[E]chan struct{})}
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

// Await waits until nothing is missing. missing is given when something happened, zero where it has not; it returns nil for nothing. The
// error is ctx's.
func (g *Gate[E]) Await(ctx context.Context, missing func(at func(E) time.Time) *Missing[E]) error {
	var m *Missing[E]
	return Hold(ctx, g.clock, func() (<-chan struct{}, time.Duration) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if m = g.missing(missing); m == nil {
			return nil, 0
		}
		if g.waited[m.What] == nil {
			g.waited[m.What] = make(chan struct{})
		}
		return g.waited[m.What], max(g.limit(m).Sub(g.clock.Now()), 0)
	}, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if m = g.missing(missing); m != nil { // what has happened meanwhile may give it more time
			g.late(m)
		}
	})
}

// Holds reports whether something is missing.
func (g *Gate[E]) Holds(missing func(at func(E) time.Time) *Missing[E]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.missing(missing) != nil
}

// missing is what is missing; nil for nothing. mu is held.
func (g *Gate[E]) missing(missing func(at func(E) time.Time) *Missing[E]) *Missing[E] {
	if g.open {
		return nil
	}
	return missing(func(what E) time.Time { return g.at[what] })
}

// limit is until when something is waited for, as things are. mu is held.
func (g *Gate[E]) limit(m *Missing[E]) time.Time {
	still := g.last.Add(g.slack)
	if m.Stretch.Before(still) {
		still = m.Stretch
	}
	return later(m.Until, still)
}

// late gives up what is missing, where it is late. mu is held.
func (g *Gate[E]) late(m *Missing[E]) {
	switch {
	case g.limit(m).After(g.clock.Now()):
	case m.Excused:
		g.last = g.clock.Now()
		g.at[m.What] = g.last
		g.wake(m.What)
	default:
		if m.Why != "" {
			g.missed = append(g.missed, m.Why)
		}
		g.release()
	}
}
