package deck

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// A turn has a process get one thing after another: what comes on a connection waits until the process has done all that it does about
// what came on another one. Else what a process does about two answers that come side by side (which number it draws for which, which
// time it reads) is a matter of microseconds, while recording and on the replay; so it is one of their order alone, which the tape has.
//
// A process that runs one thing at a time, as an event loop does, loses nothing by it: it could not have taken up the second one before.
// Of one that is always busy nothing is waited for after some time.
type turn struct {
	giving chan struct{} // holds one while something is given
	last   net.Addr      // where something was given last
	vain   int           // how often in a row a process did not come to rest
}

func newTurn() *turn { return &turn{giving: make(chan struct{}, 1)} }

const (
	restMost  = 250 * time.Millisecond // how long it takes a process to come to rest, at most
	restEvery = 200 * time.Microsecond // how often it is looked at meanwhile
	restVain  = 8                      // so often in a row it did not: it is not waited for any more
	giveMost  = 20 * time.Millisecond  // how long others wait for bytes to be given: what is not read blocks them
)

// begin waits until something may be given to the process on the connection of this remote address. What it returns says that it has been.
func (t *turn) begin(pid int, remote net.Addr) (given func()) {
	t.giving <- struct{}{}
	if t.last != nil && t.last != remote && t.vain < restVain {
		t.rest(pid)
	}
	t.last = remote
	end := sync.OnceFunc(func() { <-t.giving })
	late := time.AfterFunc(giveMost, end)
	return func() { late.Stop(); end() }
}

// rest waits until the process has nothing to do.
func (t *turn) rest(pid int) {
	for until := time.Now().Add(restMost); atWork(pid); time.Sleep(restEvery) {
		if time.Now().After(until) {
			t.vain++
			return
		}
	}
	t.vain = 0
}

// atWork reports whether a thread of a process runs, or waits for a processor, a disk or what the jail tells it.
func atWork(pid int) bool {
	for _, task := range namesIn(fmt.Sprintf("/proc/%d/task", pid), maxThreads) {
		of := fmt.Sprintf("/proc/%d/task/%s/", pid, task)
		stat, _ := os.ReadFile(of + "stat") // it may have ended
		if _, state, _ := bytes.Cut(stat, []byte(") ")); bytes.HasPrefix(state, []byte("R")) || bytes.HasPrefix(state, []byte("D")) {
			return true
		}
		if where, _ := os.ReadFile(of + "wchan"); bytes.Contains(where, []byte("seccomp")) {
			return true
		}
	}
	return false
}

// giving has bytes wait for their turn on the connection of this remote address.
func (p *processes) giving(remote net.Addr) (given func()) {
	in := p.holder(remote)
	if in == nil {
		return func() {}
	}
	return in.turn.begin(in.program.Host, remote)
}
