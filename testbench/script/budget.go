package script

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"
)

// Bounds of a run that are not options.
const (
	maxCalls     = 1000                 // calls within calls
	maxDepth     = 1000                 // of values within values, where they are compared, sent or returned
	stepsALook   = 1000                 // between two looks at the limits
	stepsACall   = 100                  // that a call of the host counts as
	heapALook    = 5 * time.Millisecond // between two looks at the heap
	leftMemory   = 4                    // times its limit is what a script is left behind at, in the middle of a step
	liveHeap     = "/gc/heap/live:bytes"
	wholeHeap    = "/memory/classes/heap/objects:bytes"
	maxIntDigits = 100_000 // of an integer that the host gives
)

// budget holds a run to its limits. But for what stop and watch use it belongs to whichever branch runs: one does.
type budget struct {
	steps    uint64 // taken
	maxSteps uint64

	memory int64 // limit, bytes
	base   int64 // of the heap, when the run began

	cause    atomic.Pointer[error] // the first thing that ended the run from outside its code
	stopping chan struct{}         // closed when cause is set
	lost     chan struct{}         // closed when the step that goes on takes more memory than can be waited for

	mu      sync.Mutex
	threads map[*starlark.Thread]struct{} // to be told to stop
}

func newBudget(o *Options) *budget {
	if heap(wholeHeap) > o.Memory/4 { // what the last collection found may be gone by now
		runtime.GC()
	}
	return &budget{maxSteps: o.Steps, memory: o.Memory, base: heap(liveHeap), stopping: make(chan struct{}), lost: make(chan struct{}),
		threads: map[*starlark.Thread]struct{}{}}
}

// stop ends every thread at its next step. The first cause stays.
func (b *budget) stop(cause error) {
	if !b.cause.CompareAndSwap(nil, &cause) {
		return
	}
	close(b.stopping)
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.threads {
		t.Cancel(cause.Error())
	}
}

// stopped is what stop was given, nil while the run goes on.
func (b *budget) stopped() error {
	if c := b.cause.Load(); c != nil {
		return *c
	}
	return nil
}

// enter makes t one of the run's threads, and leave ends that. depth is how many calls stand above its first.
func (b *budget) enter(t *starlark.Thread, depth int) (leave func()) {
	slice := b.slice()
	counted := t.Steps
	t.SetMaxExecutionSteps(t.Steps + slice)
	t.OnMaxSteps = func(t *starlark.Thread) {
		b.steps += t.Steps - counted
		counted = t.Steps
		if err := b.look(depth + t.CallStackDepth()); err != nil {
			b.stop(err)
		}
		t.SetMaxExecutionSteps(t.Steps + b.slice())
	}
	b.mu.Lock()
	b.threads[t] = struct{}{}
	b.mu.Unlock()
	if err := b.stopped(); err != nil {
		t.Cancel(err.Error())
	}
	return func() {
		b.steps += t.Steps - counted
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.threads, t)
	}
}

// slice is how many steps may pass before the next look: the limit is met exactly.
func (b *budget) slice() uint64 {
	if b.steps >= b.maxSteps {
		return 1
	}
	return min(stepsALook, b.maxSteps-b.steps)
}

func (b *budget) look(depth int) error {
	if depth > maxCalls {
		return tooManyCalls()
	}
	if b.steps >= b.maxSteps {
		return &LimitError{Limit: "steps", Value: fmt.Sprint(b.maxSteps), Flag: "--steps"}
	}
	return nil
}

func tooManyCalls() error {
	return &LimitError{Limit: "depth", What: "calls within calls", Value: fmt.Sprint(maxCalls)}
}

// call counts the steps of a call of the host, which may leave a line on a tape: what asks without end ends long before the disk is
// full.
func (b *budget) call() error {
	if b.steps += stepsACall; b.steps >= b.maxSteps {
		return b.look(0)
	}
	return nil
}

func heap(name string) int64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// watch ends the run when ctx does, when d has passed by the real clock, and when the heap has grown by more than the limit. The
// returned function ends the watching. What a call waits for outside ends with the reason.
func (b *budget) watch(ctx context.Context, d time.Duration, cancel context.CancelCauseFunc) (end func()) {
	over := func(limit *LimitError) {
		b.stop(limit)
		cancel(limit)
	}
	timer := time.AfterFunc(d, func() { over(&LimitError{Limit: "time", Value: d.String(), Flag: "--timeout"}) })
	unwatch := context.AfterFunc(ctx, func() { b.stop(context.Cause(ctx)) })
	done := make(chan struct{})
	go func() {
		look := time.NewTicker(heapALook)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
			}
			switch {
			case !b.holds(1):
			case b.stopped() == nil:
				over(&LimitError{Limit: "memory", Value: size(b.memory), Flag: "--memory"})
			case b.holds(leftMemory):
				close(b.lost)
				return
			}
		}
	}()
	return func() {
		timer.Stop()
		unwatch()
		close(done)
	}
}

// holds reports whether the heap has grown by more than so many times the limit. Only what a collection leaves counts.
func (b *budget) holds(times int64) bool {
	most := b.base + times*b.memory
	if heap(wholeHeap) <= most {
		return false
	}
	runtime.GC()
	return heap(wholeHeap) > most
}

func size(n int64) string {
	for _, unit := range []struct {
		of   int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.of && n%unit.of == 0 {
			return fmt.Sprintf("%d %s", n/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
