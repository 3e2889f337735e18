package script

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"go.starlark.net/starlark"
)

// Bounds of a run that are not options.
const (
	maxCalls     = 1000 // calls within calls
	stepsALook   = 1000 // between two looks at the limits
	stepsACall   = 100  // that a call of the host counts as
	looksAMetric = 10   // of which one asks how large the heap is
)

// budget holds a run to its limits. But for stop and threads it belongs to whichever branch runs: one does.
type budget struct {
	steps    uint64 // taken
	maxSteps uint64
	looks    uint64

	memory  int64 // limit, bytes
	base    int64 // of the heap, when the run began
	pending int64 // allocated since the heap was last measured

	cause    atomic.Pointer[error] // the first thing that ended the run from outside its code
	stopping chan struct{}         // closed when cause is set

	mu      sync.Mutex
	threads map[*starlark.Thread]struct{} // to be told to stop
}

func newBudget(o *Options) *budget {
	return &budget{maxSteps: o.Steps, memory: o.Memory, base: heap(liveHeap), stopping: make(chan struct{}), threads: map[*starlark.Thread]struct{}{}}
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
	if b.looks++; b.looks%looksAMetric == 0 {
		return b.measure(0, "")
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

// charge counts steps that a function takes without the interpreter's knowledge.
func (b *budget) charge(steps int) error {
	if steps < stepsALook {
		return nil
	}
	b.steps += uint64(steps)
	return b.look(0)
}

// alloc is asked before n bytes are allocated for what.
func (b *budget) alloc(n int64, what string) error {
	if n > b.memory {
		return b.outOfMemory(n, what)
	}
	if n > b.memory/16 {
		return b.measure(n, what)
	}
	if b.pending += n; b.pending > b.memory/16 {
		return b.measure(0, what)
	}
	return nil
}

// givenBack is the least limit for which what was collected is given back to the system at once, which takes a while.
const givenBack = 128 << 20

// measure asks the runtime; only what is still there after a collection counts. A large piece of n bytes may bring it to three
// quarters of the limit: the runtime holds more than what is alive. What grows in small pieces, n is 0, ends at a third:
// a list or a dict grows unseen, and has its old place and one of twice the size then. It is collected a little above that, or it
// would be for ever just below.
func (b *budget) measure(n int64, what string) error {
	b.pending = 0
	most := b.memory / 4 * 3
	if n == 0 {
		most = b.memory / 3
	}
	if heap(allHeap)+n <= b.base+most {
		return nil
	}
	if b.memory >= givenBack {
		debug.FreeOSMemory()
	} else {
		runtime.GC()
	}
	if n == 0 {
		most -= b.memory / 16
	}
	if heap(allHeap)+n <= b.base+most {
		return nil
	}
	return b.outOfMemory(n, what)
}

func (b *budget) outOfMemory(n int64, what string) error {
	if n > 0 {
		what += " of " + size(n)
	}
	return &LimitError{Limit: "memory", Value: size(b.memory), Flag: "--memory", What: what}
}

// What of the heap is asked for: everything that stands there, and what the last collection found alive.
const (
	allHeap  = "/memory/classes/heap/objects:bytes"
	liveHeap = "/gc/heap/live:bytes"
)

func heap(name string) int64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// watch ends the run when ctx does or d has passed by the real clock. The returned function ends the watching. What a call waits for
// outside ends with the reason.
func (b *budget) watch(ctx context.Context, d time.Duration, cancel context.CancelCauseFunc) (end func()) {
	timer := time.AfterFunc(d, func() {
		limit := &LimitError{Limit: "time", Value: d.String(), Flag: "--timeout"}
		b.stop(limit)
		cancel(limit)
	})
	unwatch := context.AfterFunc(ctx, func() { b.stop(context.Cause(ctx)) })
	return func() {
		timer.Stop()
		unwatch()
	}
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
