package deck

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// How long the two ends of a pipe wait for each other: who stops reading for those that feed it, of which one may have left the pipe and
// live on, and who SIGPIPE ended for those that read, which had ended by then.
const (
	feedLate = time.Second
	readLate = 10 * time.Second
)

// Beginning implements jail.Source: a process that looked through all begins once those have begun that it saw. It may have looked while
// another thread of its parent started them.
func (i *processInputs) Beginning() func(ctx context.Context) {
	took := i.took()
	if i.of.pids == nil || i.id == programID || took > looksFor {
		return nil
	}
	_, program := i.of.pids.was(i.program.PID)
	seen := i.answers.Listed(program)
	var begun []lane.Condition[int]
	for _, pid := range seen {
		if i.of.pids.recorded.pids[pid] {
			begun = append(begun, lane.Condition[int]{
				What: pid, Since: time.Now(), For: took + lookLate,
				Why: fmt.Sprintf("process %d looks through all processes, of which the recorded one saw %d, that has not begun", i.id, pid),
			})
		}
	}
	if !i.of.pids.begun.Holds(begun) {
		return nil
	}
	return func(ctx context.Context) { _ = i.of.pids.begun.Await(ctx, begun) }
}

// Forking implements jail.Source.
func (i *processInputs) Forking(task int, thread bool) func(ctx context.Context) {
	pid := i.program.Host
	if thread { // which may give work to what was forked
		return func(ctx context.Context) {
			long := func(pid int) bool { return i.of.executed(pid) || !briefly(pid) }
			forks := slices.DeleteFunc(childrenBefore(pid, 0), long)
			if len(forks) <= restFew && len(slices.Collect(threadsOf(pid))) <= restFew {
				i.inbox.begins(ctx, pid, forks, endHeld, restStart, func(pid int) doing { return busyBeside(pid, task) })
			}
		}
	}
	return func(ctx context.Context) {
		before := slices.DeleteFunc(childrenBefore(pid, task), i.of.executed)
		if len(before) <= restFew {
			i.inbox.begins(ctx, 0, before, restMost, restChild, busy)
		}
	}
}

// Waking implements jail.Source.
func (i *processInputs) Waking() func(ctx context.Context) {
	return func(ctx context.Context) { i.inbox.begins(ctx, i.program.Host, nil, endHeld, restStart, busy) }
}

// Finding implements jail.Source. Between its fork and what it then does a process is there for a moment, which whoever looks hits or not: a program
// that is looked for along PATH in vain is such a process, too. So it is told of one that has executed something, or rests, or none.
func (i *processInputs) Finding(pid int) func(ctx context.Context) {
	own := i.process().program.Host
	fork := i.of.fork(pid, i.inbox.rests)
	if fork == 0 || fork == own || i.inbox.rests(fork) || !briefly(fork) {
		return nil
	}
	return func(ctx context.Context) {
		held := endMost
		if reaper(fork) != 0 { // who does not ask for the ends of its children may never do
			held = endHeld
		}
		i.inbox.begins(ctx, 0, []int{fork}, held, restChild, func(pid int) doing { return i.of.unsettled(pid, own) })
	}
}

// fork is the process that has this number inside and has executed nothing yet, of those that do not rest; 0 for none, and where they are many.
func (p *processes) fork(pid int, rests func(host int) bool) int {
	if pid == 1 { // the jail's
		return 0
	}
	var hosts []int
	p.mu.Lock()
	for host, in := range p.alive {
		if in.program.PID == pid {
			p.mu.Unlock()
			if in.program.Forked {
				return host
			}
			return 0
		}
		hosts = append(hosts, host)
	}
	p.mu.Unlock()
	var forks []int
	for _, host := range hosts {
		forks = append(forks, childrenBefore(host, 0)...)
	}
	forks = slices.DeleteFunc(forks, func(host int) bool { return p.known(host) || rests(host) })
	if len(forks) > restFew {
		return 0
	}
	if at := slices.IndexFunc(forks, func(host int) bool { return inside(host) == pid }); at >= 0 {
		return forks[at]
	}
	return 0
}

// unsettled is busy of a process that has executed nothing yet, and of one that has ended and is about to be gone: not where it is a child of own,
// which does nothing meanwhile, nor where it is to be found before it ends.
func (p *processes) unsettled(pid, own int) doing {
	p.mu.Lock()
	in := p.alive[pid]
	p.mu.Unlock()
	if in != nil && (!in.program.Forked || in.awaited.Load()) {
		return doing{}
	}
	if by := reaper(pid); by != 0 {
		return doing{waits: by != own && atWork(by)}
	}
	return busy(pid)
}

// process is the process that this is, or of which it is a thread.
func (i *processInputs) process() *processInputs {
	if of, ok := i.program.Parent.(*processInputs); ok && i.program.Thread {
		return of
	}
	return i
}

// known reports whether a process of this number has executed a program, or asked for something.
func (p *processes) known(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive[pid] != nil
}

// Sleeping implements jail.Source. A thread that has slept wakes as a process gets an answer: once that rests, and on a replay after what came before.
func (i *processInputs) Sleeping() func(ctx context.Context) (woken func()) {
	i.slept++
	n := i.slept
	if n > maxWoke {
		return nil
	}
	return func(ctx context.Context) func() {
		if i.of.wakes != nil {
			i.of.wakes(ctx, i.id, n)
		}
		given := i.inbox.wake(ctx, i.program.Host, i)
		i.of.mu.Lock()
		i.woke = append(i.woke, i.of.s.rec.Ordinal())
		i.of.mu.Unlock()
		if i.of.woken != nil {
			i.of.woken(i.id, n)
		}
		return func() { given(false) }
	}
}

// maxWoke is how many wakings of one thread are kept in order, which takes about a millisecond each: more has one that looks every now and then.
const maxWoke = 256

// executed reports whether a process of this number has executed a program.
func (p *processes) executed(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.alive[pid]
	return in != nil && !in.program.Forked
}

// took is how long the recorded process took.
func (i *processInputs) took() time.Duration { return time.Duration(i.tookMS) * time.Millisecond }

// Leaving implements jail.Source. A process that stops reading from a pipe waits for those that feed it to end: it did so too late for them
// to notice, while recording, unless SIGPIPE ended one.
func (i *processInputs) Leaving(feeders func() []jail.Source) func(ctx context.Context) {
	if i.of.pids == nil {
		return nil
	}
	fed, noticed := i.ends(feeders(), feedLate)
	if noticed || !i.of.pids.over.Holds(fed) {
		return nil
	}
	return func(ctx context.Context) {
		if i.of.leaves != nil {
			i.of.leaves(i.id)
		}
		_ = i.of.pids.over.Await(ctx, fed)
	}
}

// ends are the ends of some processes, but for the program's, each awaited until late. broken says that SIGPIPE had ended one.
func (i *processInputs) ends(all []jail.Source, late time.Duration) (ends []lane.Condition[uint64], broken bool) {
	for _, s := range all {
		if in, ok := s.(*processInputs); ok && in.id != programID {
			ends = append(ends, lane.Condition[uint64]{What: in.id, Since: time.Now(), For: late, Chances: 1})
			broken = broken || in.died == "SIGPIPE"
		}
	}
	return ends, broken
}

// starter is the process that started the one which this is, or of which it is a thread; nil for none.
func (i *processInputs) starter() *processInputs {
	parent, _ := i.program.Parent.(*processInputs)
	for parent != nil && (i.program.Thread || parent.program.Host == i.program.Host) { // it executed another program, or is a thread
		i = parent
		parent, _ = i.program.Parent.(*processInputs)
	}
	return parent
}

// Ending implements jail.Source. The program itself ends when it likes. A process that SIGPIPE ended while recording may have had time to go on:
// once nobody reads what it wrote, it ends by that again.
func (i *processInputs) Ending(how jail.Exit, readers func() ([]jail.Source, bool)) func(ctx context.Context) syscall.Signal {
	i.of.stamps.look(i, "ended")
	parent := i.starter()
	if parent == nil || i.id == programID {
		return nil
	}
	var wait func(ctx context.Context)
	if i.of.ending != nil {
		wait = i.of.ending(i.id)
	}
	seen := i.of.pids.seenBy(i)
	if i.died == "" {
		i.exits.Store(&how)
	}
	return func(ctx context.Context) syscall.Signal {
		if len(seen) > 0 {
			i.awaited.Store(true)
			_ = i.of.pids.looked.Await(ctx, seen)
			i.awaited.Store(false)
		}
		if wait != nil {
			wait(ctx)
		}
		defer parent.inbox.childEnds(ctx, parent.program, i.gone)
		if i.died != "SIGPIPE" {
			return 0
		}
		if i.of.leaves != nil { // they may wait with their end for this one
			i.of.leaves(i.id)
		}
		all, _ := readers()
		read, _ := i.ends(all, readLate)
		_ = i.of.pids.over.Await(ctx, read)
		if all, piped := readers(); !piped || len(all) > 0 {
			return 0
		}
		return syscall.SIGPIPE
	}
}
