package deck

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// An inbox has a process get one thing after another: an answer, the end of a child, and what comes from elsewhere than what came last, wait
// until the process has done all that it does about that, and beside. Else what it does about two answers that come side by side (which number
// it draws for which, which time it reads) is a matter of microseconds, while recording and on the replay; so it is one of their order alone,
// which the tape has.
//
// A process that does one thing at a time, as an event loop does, loses nothing by it: it could not have taken up the second one before.
// One that is always at work is waited for a few times.
type inbox struct {
	giving chan struct{} // holds one while something is given
	last   any           // where something was given last: a connection's address, or the number of an MCP server
	vain   int           // how often the process did not come to rest, less how often it did
	ends   int           // the same, for ends of children
	wakes  int           // the same, for threads that have slept
	looks  int           // the same, for what of its files goes on the tape
	beside int           // the same, for those that the process has forked, while one of them is given an answer

	mu      sync.Mutex   // guards what follows
	pending []*glance    // for the next time that the process rests
	starts  int          // how often a thread, or a fork, waited in vain to begin, less how often it did not
	settled map[int]bool // forks that have come to rest since they were made
}

func newInbox() *inbox { return &inbox{giving: make(chan struct{}, 1)} }

const (
	restFirst  = 20 * time.Microsecond  // when it is looked again whether a process rests, and
	restEvery  = 200 * time.Microsecond // how often in the end, or a sixteenth of the time that it was looked at for: looking takes a processor too
	restWork   = 250 * time.Millisecond // what it may work meanwhile, on all processors together
	restChild  = 100 * time.Millisecond // the same while a child waits to end
	restEnd    = 30 * time.Millisecond  // and then, of a large runtime, and of who did not come to rest: who builds a program works all the time
	endHeld    = 100 * time.Millisecond // how long a child waits to end while its parent is itself held up, and does not run
	endMost    = time.Second            // how long a process takes to end that may, or a connection
	restMost   = 5 * time.Second        // how long that may take, on a machine that has much to do
	restStart  = 30 * time.Millisecond  // what it may work while a thread of it waits to begin; a fork before another one has time for a child's
	restFew    = 40                     // of a process that has more threads, or forks, none waits
	maxSettled = 1024                   // forks that are known to be settled; then all are looked at anew
	restVain   = 8                      // so much oftener it did not than it did: it is not waited for any more
)

// begin waits until something may be given to the process from where that comes: an answer's begin, or something else. What it returns says
// that it has been.
func (i *inbox) begin(pid int, from any, answer bool) (given func(ends bool)) {
	i.giving <- struct{}{}
	if answer || i.last != nil && i.last != from {
		rest(pid, restMost, restWork, &i.vain, busy, forever)
		i.look()
	}
	i.last = from
	return i.given()
}

// beginBeside is begin for a fork of the process: it waits until the other ones rest. Where one does not, the rest is not waited for, and that counts once.
func (i *inbox) beginBeside(others []int) (given func(ends bool)) {
	i.giving <- struct{}{}
	vain := i.beside
	for _, pid := range others {
		if rest(pid, restMost, restChild, &i.beside, busy, nil); i.beside > vain || vain >= restVain {
			return i.given()
		}
		i.beside = vain
	}
	i.beside = max(vain-1, 0)
	return i.given()
}

// given is what begin returns.
func (i *inbox) given() func(ends bool) {
	end := sync.OnceFunc(func() { <-i.giving })
	late := time.AfterFunc(network.GiveMost, end)
	return func(ends bool) {
		switch on := late.Stop(); {
		case !ends:
			end()
		case on:
			late.Reset(endMost)
		}
	}
}

// wake waits until a thread of the process may wake from its sleep.
func (i *inbox) wake(ctx context.Context, pid int, who any) (given func(ends bool)) {
	i.giving <- struct{}{}
	rest(pid, restMost, restStart, &i.wakes, busy, ctx.Done())
	i.look()
	i.last = who
	return i.given()
}

// childEnds waits until a child of the process may end. Others wait until it is gone. Who is killed meanwhile, or a run that is over, waits for nothing.
func (i *inbox) childEnds(ctx context.Context, of *jail.Program, gone <-chan struct{}) {
	select {
	case i.giving <- struct{}{}:
	case <-gone:
		return
	case <-ctx.Done():
		return
	}
	work := restChild
	if of.OwnTicks || i.ends > 0 {
		work = restEnd
	}
	rest(of.Host, endHeld, work, &i.ends, busy, gone)
	i.look()
	go func() {
		select {
		case <-gone:
		case <-time.After(endMost):
		case <-ctx.Done():
		}
		<-i.giving
	}()
}

// looked does something the next time that the process rests, before it gets anything else: what stands in its files is then what it made of what
// it has got, and not how far it is.
func (i *inbox) looked(pid int, do func()) {
	l := &glance{do: do, done: make(chan struct{})}
	i.mu.Lock()
	i.pending = append(i.pending, l)
	i.mu.Unlock()
	select {
	case i.giving <- struct{}{}:
		rest(pid, restMost, restWork, &i.looks, busy, forever)
		i.look()
		<-i.giving
	case <-l.done:
	}
}

// A glance is something that is to be done while a process rests.
type glance struct {
	do   func()
	done chan struct{}
}

// look does what is to be done while the process rests, and before it gets what comes next. Whoever has it gives something.
func (i *inbox) look() {
	i.mu.Lock()
	pending := i.pending
	i.pending = nil
	i.mu.Unlock()
	for _, l := range pending {
		l.do()
		close(l.done)
	}
}

// begins waits until a thread of the process may begin, or a fork of it: until those before it have done what they do. Workers that wait at a queue stand
// there in the order in which they were made, then, while recording and on the replay, and so which takes which work is no chance.
// A fork that has come to rest is done with its begin.
func (i *inbox) begins(ctx context.Context, own int, forks []int, held, work time.Duration, busy func(pid int) doing) {
	i.mu.Lock()
	vain, was := i.starts, i.starts
	forks = slices.DeleteFunc(forks, func(pid int) bool { return i.settled[pid] })
	i.mu.Unlock()
	var settled []int
	for _, pid := range forks {
		before := vain
		if rest(pid, held, work, &vain, busy, ctx.Done()); vain <= before {
			settled = append(settled, pid)
		}
	}
	if own != 0 {
		rest(own, held, work, &vain, busy, ctx.Done())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.starts = max(i.starts+vain-was, 0)
	if i.settled == nil || len(i.settled) > maxSettled {
		i.settled = make(map[int]bool)
	}
	for _, pid := range settled {
		i.settled[pid] = true
	}
}

// rests reports whether a fork has come to rest since it was made.
func (i *inbox) rests(fork int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.settled[fork]
}

// forever is of who waits as long as it takes, and looks again.
var forever = make(chan struct{})

// rest waits until a process has nothing to do: until it has worked for so much, or been held up for so long, which is counted.
func rest(pid int, held, work time.Duration, vain *int, busy func(pid int) doing, gone <-chan struct{}) {
	if *vain >= restVain {
		return
	}
	begun, before := time.Now(), worked(pid)
	ran := begun
	for every := restFirst; ; every = min(2*every, max(restEvery, time.Since(begun)/16)) {
		var does doing
		if gone == nil {
			does = busy(pid)
		} else {
			does = twice(func() doing {
				does := busy(pid)
				does.runs = does.runs || !does.waits && starts(pid, does.reads, briefly)
				return does
			}, func() int { return turns(pid) })
		}
		switch now := time.Now(); {
		case does.rests():
			*vain = max(*vain-1, 0)
			return
		case now.Sub(begun) > restMost, now.Sub(ran) > held, worked(pid)-before > work:
			*vain++
			return
		case does.runs:
			ran = now
		}
		select {
		case <-gone:
			return
		case <-time.After(every):
		}
	}
}

// twice looks at a process two times where it finds it at rest. A thread that is looked at last may have handed over to one that was before, as those
// do that share an interpreter's lock, and that may be without a processor still: who is found at rest twice, and had no turn meanwhile, rests.
// Threads that do something every few ms have turns too: it counts as held up.
func twice(busy func() doing, turns func() int) (does doing) {
	before := turns()
	for range 2 {
		if does = busy(); !does.rests() {
			return does
		}
	}
	does.waits = turns() != before
	return does
}

// resting does something while the process rests that asks.
func (p *processes) resting(r *exchange.Request, do func()) {
	p.mu.Lock()
	in := p.live[r.Opener]
	p.mu.Unlock()
	if in == nil {
		do()
		return
	}
	in.inbox.looked(in.program.Host, do)
}

// giving has what is given wait for its place in the inbox, on the connection of this remote address.
func (p *processes) giving(remote net.Addr, answer bool) (given func(ends bool)) {
	in := p.holder(remote)
	if in == nil {
		return func(bool) {}
	}
	own := in.inbox.begin(in.program.Host, remote, answer)
	by, forked := in.program.Parent.(*processInputs)
	if !answer || !forked || !in.program.Forked || in.program.Thread {
		return own
	}
	var beside []int // workers that one process has forked get answers one after another, too
	p.mu.Lock()
	for pid, other := range p.alive {
		if other != in && other.parent == in.parent && other.program.Forked && len(beside) < restFew {
			beside = append(beside, pid)
		}
	}
	p.mu.Unlock()
	first := by.inbox.beginBeside(beside)
	return func(ends bool) {
		first(ends)
		own(ends)
	}
}

// givingTo has what a server is about to write to the process pid, its client, wait for its place in the inbox.
func (p *processes) givingTo(pid int, by uint32) func(answer bool) (given func()) {
	if p == nil {
		return nil
	}
	return func(answer bool) func() {
		p.mu.Lock()
		in := p.alive[pid]
		p.mu.Unlock()
		if in == nil {
			return func() {}
		}
		given := in.inbox.begin(pid, by, answer)
		late := time.AfterFunc(network.WriteMost, func() { given(false) })
		return func() {
			late.Stop()
			given(false)
		}
	}
}
