package inputs

import (
	"errors"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/trace"
	"golang.org/x/sys/unix"
)

// A following is an execve that goes on, and is looked at once it has made another program: the process is stopped for a moment, as
// a debugger does, before that program's first instruction. What that would read from the kernel's pages, without a call, is
// hidden from it then. Of an execve that fails nothing is seen.
type following struct {
	tid int // of the thread; when its execve has succeeded it has the number of its process
	is  process.Status
	of  *process.Process
}

// Follow lets an execve go on. What it returns, if anything, is to be run on this thread, which is its tracer now.
func (in *Answerer) Follow(c *notify.Call) (await func()) {
	defer c.GoOn()
	if in.followed(c.Task, true) { // a program that is looked for along PATH is executed again before the failure of the first try was seen
		return nil
	}
	f, err := in.traceExec(c.Task)
	if err != nil {
		if errors.Is(err, unix.EPERM) && c.Waits() {
			in.Untraced.Add(1)
		}
		in.followed(c.Task, false)
		return nil
	}
	return func() { f.await(in) }
}

// followed notes whether a thread is followed, and returns what was noted. It is taken back while the thread stands still, or is gone.
func (in *Answerer) followed(task int, now bool) (was bool) {
	in.table.Lock()
	defer in.table.Unlock()
	th := in.table.Note(task)
	was, th.Followed = th.Followed, now
	in.table.Forget(task)
	return was
}

func (in *Answerer) traceExec(tid int) (*following, error) {
	is, err := in.table.Status(tid)
	if err != nil {
		return nil, err
	}
	in.table.Lock()
	of := in.hold(is.Process)
	in.table.Unlock()
	if err := trace.Seize(tid, unix.PTRACE_O_TRACEEXEC); err != nil {
		return nil, err
	}
	return &following{tid, is, of}, nil
}

// await ends with the execve.
func (f *following) await(in *Answerer) {
	stopped, sig, executed := trace.AwaitExec(f.tid, f.is.Process)
	if executed {
		if a := in.look(stopped, f); a != nil {
			if wait := a.Source.Beginning(); wait != nil {
				wait(in.letGo)
			}
		}
	}
	in.followed(f.tid, false)
	if stopped != 0 {
		trace.Release(stopped, sig)
	}
}

// look is told that a process has become another program, and returns who asks now; nil where that is not known. It stands still.
func (in *Answerer) look(pid int, f *following) *process.Asker {
	sp, err := trace.StackOf(pid)
	if err != nil {
		return nil
	}
	st, err := readStack(pid, sp)
	if err != nil {
		return nil
	}
	p := &process.Program{Argv: st.argv, Path: st.path, Handed: in.handed(pid, st.argv)}
	if cwd, err := inspect.ReadLink(in.table.View.Proc, strconv.Itoa(pid)+"/cwd"); err == nil {
		p.Dir, _ = in.table.View.Strip(cwd)
	}
	a := in.started(f.of, f.is, p)
	st.hide(pid, a)
	return a
}
