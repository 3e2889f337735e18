package inputs

import (
	"context"
	"sync"
	"sync/atomic"

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
	case unix.SYS_EXIT_GROUP:
		in.exit(c)
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

// exit lets a process end once its source says so. What has only forked, and asked for nothing, is nobody of whom anything is known.
func (in *Answerer) exit(c *notify.Call) {
	var wait func(context.Context)
	if p := in.known(c.Task); p != nil {
		wait = p.Source.Ending()
	}
	if wait == nil {
		c.GoOn()
		return
	}
	in.held.Go(func() {
		wait(in.letGo)
		c.GoOn()
	})
}

// SourceOf is what answers a thread; nil where the kernel does.
func (in *Answerer) SourceOf(task int) process.Source {
	if p := in.of(task); p != nil {
		return p.Source
	}
	return nil
}
