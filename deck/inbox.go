package deck

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/network"
)

// An inbox has a process get one thing after another: an answer, and what comes on another connection than what came last, waits until the
// process has done all that it does about that, and beside. Else what it does about two answers that come side by side (which number it draws for which, which time it
// reads) is a matter of microseconds, while recording and on the replay; so it is one of their order alone, which the tape has.
//
// A process that does one thing at a time, as an event loop does, loses nothing by it: it could not have taken up the second one before.
// One that is always at work is waited for a few times.
type inbox struct {
	giving chan struct{} // holds one while something is given
	last   net.Addr      // where something was given last
	vain   int           // how often the process did not come to rest, less how often it did
}

func newInbox() *inbox { return &inbox{giving: make(chan struct{}, 1)} }

const (
	restEvery = 200 * time.Microsecond // how often it is looked whether a process rests
	restWork  = 250 * time.Millisecond // what it may work meanwhile, on all processors together
	restMost  = 5 * time.Second        // how long that may take, on a machine that has much to do
	restVain  = 8                      // so much oftener it did not than it did: it is not waited for any more
)

// begin waits until something may be given to the process on the connection of this remote address: an answer's begin, or something else. What
// it returns says that it has been.
func (i *inbox) begin(pid int, remote net.Addr, answer bool) (given func()) {
	i.giving <- struct{}{}
	if (answer || i.last != nil && i.last != remote) && i.vain < restVain {
		i.rest(pid)
	}
	i.last = remote
	end := sync.OnceFunc(func() { <-i.giving })
	late := time.AfterFunc(network.GiveMost, end)
	return func() { late.Stop(); end() }
}

// rest waits until the process has nothing to do.
func (i *inbox) rest(pid int) {
	begun, before := time.Now(), worked(pid)
	for atWork(pid) {
		time.Sleep(restEvery)
		if time.Since(begun) > restMost || worked(pid)-before > restWork {
			i.vain++
			return
		}
	}
	i.vain = max(i.vain-1, 0)
}

// maxThreads is how many threads of a process are looked at.
const maxThreads = 256

// atWork reports whether a thread of a process runs, or waits for a processor, a disk or what the jail tells it.
func atWork(pid int) bool {
	tasks, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	defer tasks.Close()
	names, _ := tasks.Readdirnames(maxThreads)
	for _, task := range names {
		of := fmt.Sprintf("/proc/%d/task/%s/", pid, task)
		if state := statOf(of); len(state) > 0 && (state[0][0] == 'R' || state[0][0] == 'D') {
			return true
		}
		if where, _ := os.ReadFile(of + "wchan"); bytes.Contains(where, []byte("seccomp")) {
			return true
		}
	}
	return false
}

// worked is how much processor time a process has used.
func worked(pid int) (sum time.Duration) {
	const user, system, tick = 11, 12, 10 * time.Millisecond // fields behind the name, proc_pid_stat(5)
	if stat := statOf(fmt.Sprintf("/proc/%d/", pid)); len(stat) > system {
		for _, field := range stat[user : system+1] {
			n, _ := strconv.Atoi(string(field))
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// statOf are the fields of a process or thread behind its name; none where it has ended.
func statOf(dir string) [][]byte {
	b, _ := os.ReadFile(dir + "stat")
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}

// giving has what is given wait for its place in the inbox, on the connection of this remote address.
func (p *processes) giving(remote net.Addr, answer bool) (given func()) {
	in := p.holder(remote)
	if in == nil {
		return func() {}
	}
	return in.inbox.begin(in.program.Host, remote, answer)
}
