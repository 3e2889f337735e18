package inputs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// An Answerer answers what processes ask the kernel for. Only who receives calls uses it, but for what the table's lock guards.
type Answerer struct {
	to      Sources
	table   *process.Table
	begins  func()                 // called while the jail's program stands before its first instruction
	layered func(path string) bool // whether the mount there lays changes over the host's

	Untraced atomic.Int64 // programs whose clock could not be taken, for they are debugged

	program  *process.Process // the jail's; nil before its execve
	outcomes []outcome        // to be told by who has the lock

	text   inspect.TextReader
	buf    [maxFill]byte
	status [4096]byte // of a file

	held    sync.WaitGroup  // processes whose end is held up
	letGo   context.Context // done when none is any more
	release context.CancelFunc
}

// New answers the processes of t.
func New(to Sources, t *process.Table, begins func(), layered func(path string) bool) *Answerer {
	in := &Answerer{to: to, table: t, begins: begins, layered: layered}
	in.letGo, in.release = context.WithCancel(context.Background())
	return in
}

// Close lets all processes end whose end is held up. It is called once nothing is received any more.
func (in *Answerer) Close() {
	in.release()
	in.held.Wait()
}

// Answer answers a call, and reports whether it was one of Rules; the name that another one makes may be changed by then. Before the program's
// execve, and where nothing can be found out about processes, the kernel answers.
func (in *Answerer) Answer(c *notify.Call) bool {
	if path, flags, ok := opened(c); ok {
		in.open(c, path, flags)
		return true
	}
	switch c.Nr {
	case unix.SYS_BIND:
		return connect.Bind(c, func() process.Source { return in.SourceOf(c.Task) })
	case unix.SYS_EXIT_GROUP, unix.SYS_CLOSE:
		in.leave(c)
		return true
	}
	answer := answers[c.Nr]
	if answer == nil {
		in.nameAnew(c)
		return false
	}
	if p := in.of(c.Task); p != nil {
		answer(in, c, p)
	} else {
		c.GoOn()
	}
	return true
}

// leave lets a process leave its standard input, or end, once its source says so. What has only forked, and asked for nothing, is nobody of
// whom anything is known.
func (in *Answerer) leave(c *notify.Call) {
	p := in.known(c.Task)
	if p == nil {
		c.GoOn()
		return
	}
	var wait func(context.Context) syscall.Signal
	if c.Nr == unix.SYS_EXIT_GROUP {
		wait = p.Source.Ending(func() ([]process.Source, bool) { return in.readers(p) })
	}
	leaves := p.Source.Leaving(func() []process.Source { return in.feeders(p.Process) })
	if wait == nil && leaves == nil {
		c.GoOn()
		return
	}
	in.held.Go(func() {
		if leaves != nil {
			leaves(in.letGo)
		}
		if wait != nil {
			if by := wait(in.letGo); by != 0 {
				_ = p.Process.Signal(by) // it ends in any case
			}
		}
		c.GoOn()
	})
}

// feeders are the processes whose output is the pipe that p reads from; none where another reads from it too.
func (in *Answerer) feeders(p *process.Process) []process.Source {
	if len(in.at(in.pipeOf(p, 0), p, 0)) > 0 {
		return nil
	}
	return in.at(in.pipeOf(p, 0), p, 1, 2)
}

// readers are those that read from the pipe that p writes to, where it is one.
func (in *Answerer) readers(p *process.Asker) (all []process.Source, piped bool) {
	pipe := cmp.Or(in.pipeOf(p.Process, 1), p.Output)
	return in.at(pipe, p.Process, 0), pipe != ""
}

// at are the processes but p that have a pipe as one of their descriptors fds, or had it as their output and closed it.
func (in *Answerer) at(pipe string, p *process.Process, fds ...int) (all []process.Source) {
	if pipe == "" {
		return nil
	}
	in.table.Lock()
	defer in.table.Unlock()
	for q := range in.table.All() {
		if q != p && q.Asker != nil && slices.ContainsFunc(fds, func(fd int) bool { return in.pipeOf(q, fd) == pipe || fd == 1 && q.Asker.Output == pipe }) {
			all = append(all, q.Asker.Source)
		}
	}
	return all
}

// pipeOf names the pipe that a process has as a descriptor; "" where that is something else.
func (in *Answerer) pipeOf(p *process.Process, fd int) string {
	var buf [64]byte
	n, err := unix.Readlinkat(in.table.View.Proc, fmt.Sprintf("%d/fd/%d", p.PID, fd), buf[:])
	if name := string(buf[:max(n, 0)]); err == nil && strings.HasPrefix(name, "pipe:") {
		return name
	}
	return ""
}

// SourceOf is what answers a thread; nil where the kernel does.
func (in *Answerer) SourceOf(task int) process.Source {
	if p := in.of(task); p != nil {
		return p.Source
	}
	return nil
}
