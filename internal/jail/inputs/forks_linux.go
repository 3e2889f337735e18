package inputs

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// forkCalls notify each call that makes a process or a thread.
func forkCalls() (rules []filter.Rule) {
	for _, nr := range []int{unix.SYS_CLONE, unix.SYS_CLONE3, filter.SysFork, filter.SysVfork} {
		if nr >= 0 {
			rules = append(rules, filter.Rule{Nr: uint32(nr), Then: filter.Notify})
		}
	}
	return rules
}

// forks has processes and threads begin one after another, each with the PID that the Sources say: so whoever forks is known by its own, and
// what it makes by its number among what that has made. Only who receives calls uses it, once the jail's program has begun.
type forks struct {
	pids    *process.PIDs
	going   *forking
	notMade map[string]int // PIDs of forks that failed, by who made them: it has them when it tries again
}

// A forking is a call that was let go on, and of which it is not known yet whether it has made something.
type forking struct {
	task  int
	by    string
	want  int // the PID; 0 for any
	after int // which was given last
}

// forkLate is how long the next one waits for that: it is decided as soon as its thread has a processor.
const forkLate = 100 * time.Millisecond

// fork lets a call go on that makes a process or a thread.
func (in *Answerer) fork(c *notify.Call) {
	defer c.GoOn()
	if is, err := in.table.Status(c.Task); err == nil {
		in.forks.next(in.to, c.Task, in.forkedBy(is)+made(c))
	}
}

// made says of which kind that is which a call makes.
func made(c *notify.Call) string {
	flags := c.Args[0]
	switch c.Nr {
	case filter.SysFork, filter.SysVfork:
		flags = 0
	case unix.SYS_CLONE3:
		var b [8]byte
		_ = inspect.ReadMemory(c.Task, flags, b[:]) // what cannot be read makes nothing
		flags = binary.NativeEndian.Uint64(b[:])
	}
	if flags&unix.CLONE_THREAD != 0 {
		return " thread"
	}
	return ""
}

// forkedBy names who forks: a thread where threads keep to their work, else a process, of which the first thread may.
func (in *Answerer) forkedBy(is process.Status) string {
	in.table.Lock()
	defer in.table.Unlock()
	p := in.table.Known(is.Process)
	switch {
	case is.Number == is.Inside || p == nil || p.Sharing == process.NoThreads:
		return strconv.Itoa(is.Number)
	case p.Sharing == process.OtherThreads:
		return strconv.Itoa(is.Inside) + "+"
	}
	return strconv.Itoa(is.Inside)
}

// next is told of a call by a thread that is about to go on.
func (f *forks) next(to Sources, task int, by string) {
	last := f.settle(to, task)
	for since := time.Now(); f.going != nil && time.Since(since) < forkLate; last = f.settle(to, task) {
		time.Sleep(20 * time.Microsecond)
	}
	f.failed()
	want, again := f.notMade[by]
	if delete(f.notMade, by); !again {
		want = to.Fork(by)
	}
	if want > 0 && want != last+1 {
		last = f.pids.Last(want - 1)
	}
	f.going = &forking{task, by, want, last}
}

// settle finds out whether the call that was let go on has made something, and returns the PID that was given last. A thread that makes
// another call has.
func (f *forks) settle(to Sources, task int) (last int) {
	last = f.pids.Last(0)
	switch g := f.going; {
	case g == nil:
	case last != g.after:
		f.going = nil
		to.Forked(g.by, last)
	case g.task == task:
		f.failed()
	}
	return last
}

// failed is told that the call, where one was let go on, has made nothing.
func (f *forks) failed() {
	g := f.going
	if f.going = nil; g == nil || g.want == 0 {
		return
	}
	if f.notMade == nil {
		f.notMade = make(map[string]int)
	}
	f.notMade[g.by] = g.want
}
