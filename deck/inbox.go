package deck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

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
}

func newInbox() *inbox { return &inbox{giving: make(chan struct{}, 1)} }

const (
	restFirst = 20 * time.Microsecond  // when it is looked again whether a process rests, and
	restEvery = 200 * time.Microsecond // how often in the end, or a sixteenth of the time that it was looked at for: looking takes a processor too
	restWork  = 250 * time.Millisecond // what it may work meanwhile, on all processors together
	restChild = 100 * time.Millisecond // the same while a child waits to end
	restEnd   = 30 * time.Millisecond  // and then, of a large runtime, and of who did not come to rest: who builds a program works all the time
	endHeld   = 100 * time.Millisecond // how long a child waits to end while its parent is itself held up, and does not run
	endMost   = time.Second            // how long a process takes to end that may, or a connection
	restMost  = 5 * time.Second        // how long that may take, on a machine that has much to do
	restVain  = 8                      // so much oftener it did not than it did: it is not waited for any more
)

// begin waits until something may be given to the process from where that comes: an answer's begin, or something else. What it returns says
// that it has been.
func (i *inbox) begin(pid int, from any, answer bool) (given func(ends bool)) {
	i.giving <- struct{}{}
	if answer || i.last != nil && i.last != from {
		rest(pid, restMost, restWork, &i.vain, nil)
	}
	i.last = from
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
	rest(of.Host, endHeld, work, &i.ends, gone)
	go func() {
		select {
		case <-gone:
		case <-time.After(endMost):
		case <-ctx.Done():
		}
		<-i.giving
	}()
}

// rest waits until a process has nothing to do: until it has worked for so much, or been held up for so long, which is counted.
func rest(pid int, held, work time.Duration, vain *int, gone <-chan struct{}) {
	if *vain >= restVain {
		return
	}
	begun, before := time.Now(), worked(pid)
	ran := begun
	for every := restFirst; ; every = min(2*every, max(restEvery, time.Since(begun)/16)) {
		runs, waits := busy(pid)
		if !runs && !waits && gone != nil {
			runs, waits = again(func() (runs, waits bool) {
				runs, waits = busy(pid)
				return runs || !waits && starts(pid, briefly), waits
			}, func() int { return turns(pid) })
		}
		switch now := time.Now(); {
		case !runs && !waits:
			*vain = max(*vain-1, 0)
			return
		case now.Sub(begun) > restMost, now.Sub(ran) > held, worked(pid)-before > work:
			*vain++
			return
		case runs:
			ran = now
		}
		select {
		case <-gone:
			return
		case <-time.After(every):
		}
	}
}

// again looks once more at a process that was found at rest. A thread that was looked at last may have handed over to one that was before, as those
// do that share an interpreter's lock, and that may be without a processor still: who is found at rest twice, and had no turn meanwhile, rests.
// Threads that do something every few ms have turns too: it counts as held up.
func again(busy func() (runs, waits bool), turns func() int) (runs, waits bool) {
	before := turns()
	for range 2 {
		if runs, waits = busy(); runs || waits {
			return runs, waits
		}
	}
	return false, turns() != before
}

// starts reports whether a thread of a process waits until a child has executed a program, which does or is about to: it hears of a failure by a pipe
// that the child has until then. A shell that waits for what a part of it prints reads from one that would be handed down.
func starts(pid int, briefly func(child int) bool) bool {
	for of := range threadsOf(pid) {
		where, _ := os.ReadFile(of + "wchan")
		call, _ := os.ReadFile(of + "syscall")
		var nr, fd int
		if n, _ := fmt.Sscanf(string(call), "%d 0x%x", &nr, &fd); n < 2 || !bytes.Contains(where, []byte("pipe_read")) {
			continue
		}
		pipe, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
		children, _ := os.ReadFile(of + "children")
		list := strings.Fields(string(children))
		for _, child := range list[:min(len(list), maxThreads)] {
			n, _ := strconv.Atoi(child)
			if !briefly(n) {
				continue
			}
			switch runs, waits := busy(n); {
			case runs && (executing("/proc/"+child) || keeps("/proc/"+child, pipe)), !runs && waits && executes("/proc/"+child):
				return true
			}
		}
	}
	return false
}

// executing reports whether a process runs that is in the middle of an execve: it has no arguments then.
func executing(process string) bool {
	f, err := os.Open(process + "/cmdline")
	if err != nil {
		return false
	}
	defer f.Close()
	n, err := f.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// executes reports whether a process that waits does so in execve or execveat.
func executes(process string) bool {
	call, _ := os.ReadFile(process + "/syscall")
	nr, _, _ := strings.Cut(string(call), " ")
	return slices.Contains(map[string][]string{"amd64": {"59", "322"}, "arm64": {"221", "281"}}[runtime.GOARCH], nr)
}

// keeps reports whether a process may write to a file by a descriptor that is closed when it executes a program.
func keeps(process, file string) bool {
	all, _ := os.ReadDir(process + "/fd")
	return slices.ContainsFunc(all, func(fd os.DirEntry) bool {
		if is, _ := os.Readlink(process + "/fd/" + fd.Name()); is != file {
			return false
		}
		info, _ := os.ReadFile(process + "/fdinfo/" + fd.Name())
		_, after, _ := bytes.Cut(info, []byte("flags:"))
		flags := 0
		_, _ = fmt.Sscanf(string(after), "%o", &flags)
		return flags&syscall.O_CLOEXEC != 0 && flags&(syscall.O_WRONLY|syscall.O_RDWR) == syscall.O_WRONLY
	})
}

// briefly reports whether a process has not worked for long: else it is about something else than to execute a program.
func briefly(pid int) bool { return worked(pid) < restChild }

// maxThreads is how many threads of a process are looked at, and children of each.
const maxThreads = 256

// atWork reports whether a process has something to do.
func atWork(pid int) bool {
	runs, waits := busy(pid)
	return runs || waits
}

// busy reports whether a thread of a process runs, or waits for a processor; else whether one waits for a disk, or for the jail, which has it stand
// still for a moment as it executes a program.
func busy(pid int) (runs, waits bool) {
	for of := range threadsOf(pid) {
		switch state := statOf(of); {
		case len(state) == 0, state[0][0] == 'Z':
		case state[0][0] == 'R':
			return true, waits
		case state[0][0] == 'D', state[0][0] == 't':
			waits = true
		default:
			waits = waits || heldUp(of)
		}
	}
	return false, waits
}

// heldUp reports whether a thread that sleeps may wait for what the jail tells it. Of one that has not left its processor's queue yet, and is not
// taken out before its turn (Linux 6.12 and newer), the kernel says no place; nor does it of one that may not be looked at.
func heldUp(thread string) bool {
	where, _ := os.ReadFile(thread + "wchan")
	if string(where) == "0" {
		_, err := os.ReadFile(thread + "syscall")
		return err == nil && tellsPlaces()
	}
	return bytes.Contains(where, []byte("seccomp"))
}

// tellsPlaces reports whether this kernel says where a thread sleeps, as some of ours always do.
var tellsPlaces = sync.OnceValue(func() bool {
	for of := range threadsOf(os.Getpid()) {
		if where, _ := os.ReadFile(of + "wchan"); len(where) > 0 && string(where) != "0" {
			return true
		}
	}
	return false
})

// turns is how often the threads of a process have had a processor: the third field of their schedstat.
func turns(pid int) (sum int) {
	for of := range threadsOf(pid) {
		had, _ := os.ReadFile(of + "schedstat")
		if fields := bytes.Fields(had); len(fields) == 3 {
			n, _ := strconv.Atoi(string(fields[2]))
			sum += n
		}
	}
	return sum
}

// threadsOf are the directories of a process's threads.
func threadsOf(pid int) iter.Seq[string] {
	return func(yield func(string) bool) {
		tasks, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return
		}
		defer tasks.Close()
		names, _ := tasks.Readdirnames(maxThreads)
		for _, task := range names {
			if !yield(fmt.Sprintf("/proc/%d/task/%s/", pid, task)) {
				return
			}
		}
	}
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
func (p *processes) giving(remote net.Addr, answer bool) (given func(ends bool)) {
	in := p.holder(remote)
	if in == nil {
		return func(bool) {}
	}
	return in.inbox.begin(in.program.Host, remote, answer)
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
		return func() { given(false) }
	}
}
