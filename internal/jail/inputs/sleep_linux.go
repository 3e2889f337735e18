package inputs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// lookForSignals is how often it is looked whether a signal has come for a thread that sleeps here: nothing else wakes it.
const lookForSignals = 20 * time.Millisecond

// sleep lets a thread sleep until a moment, where threads are told apart and there are several: it wakes once its Source says so. Others sleep in
// the kernel.
func (in *Answerer) sleep(c *notify.Call, p *process.Asker) {
	left := in.sleepLeft(c, p)
	if left == nil || p.Process.Sharing != process.NoThreads || !in.hasThreads(p.Process.PID) {
		in.waitFor(c, p)
		return
	}
	wait := p.Source.Sleeping()
	if wait == nil {
		in.waitFor(c, p)
		return
	}
	in.held.Go(func() {
		for d := left(); d > 0; d = left() {
			select {
			case <-in.letGo.Done():
				c.GoOn()
				return
			case <-time.After(min(d, lookForSignals)):
			}
			if signalled(c.Task) {
				c.Fail(unix.EINTR)
				return
			}
		}
		woken := wait(in.letGo)
		c.Return(0)
		woken()
	})
}

// sleepLeft returns what says how much of a clock_nanosleep is left; nil for one that the kernel is to answer.
func (in *Answerer) sleepLeft(c *notify.Call, p *process.Asker) func() time.Duration {
	clock := int32(c.Args[0])
	var b [16]byte
	if clock != unix.CLOCK_REALTIME && clock != unix.CLOCK_MONOTONIC || inspect.ReadMemory(c.Task, c.Args[2], b[:]) != nil {
		return nil
	}
	behind := in.behind(c, p)
	sec, ns := int64(binary.NativeEndian.Uint64(b[:])), int64(binary.NativeEndian.Uint64(b[8:]))
	if sec < 0 || sec > 1<<33 || ns < 0 || ns >= second {
		return nil
	}
	at := sec*second + ns + behind
	return func() time.Duration {
		var now unix.Timespec
		_ = unix.ClockGettime(clock, &now) // of a clock that there is
		return time.Duration(at - now.Nano())
	}
}

// hasThreads reports whether a process has more than one thread: so many directories more has its list than one without.
func (in *Answerer) hasThreads(pid int) bool {
	var st unix.Stat_t
	return unix.Fstatat(in.table.View.Proc, strconv.Itoa(pid)+"/task", &st, 0) == nil && st.Nlink > 3
}

// signalled reports whether a signal waits for a thread, or for its process, which it has not blocked.
func signalled(task int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", task))
	if err != nil {
		return true // it has gone
	}
	mask := func(name string) (n uint64) {
		_, after, _ := bytes.Cut(status, []byte(name))
		_, _ = fmt.Sscanf(string(after[:min(len(after), 32)]), "%x", &n)
		return n
	}
	return (mask("SigPnd:")|mask("ShdPnd:"))&^mask("SigBlk:") != 0
}
