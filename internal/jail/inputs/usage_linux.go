package inputs

import (
	"encoding/binary"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/trace"
	"golang.org/x/sys/unix"
)

// processorTime tells how long a process had a processor, in ns. It does not go back where nothing is recorded any more.
func (in *Answerer) processorTime(c *notify.Call, p *process.Asker) {
	now, err := processorTimeOf(p.Process.PID)
	if err != nil {
		c.GoOn()
		return
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(now))
	if is := p.Source.Asked("cputime", "", b); len(is) == len(b) {
		b = is
	}
	p.Used.Lock()
	defer p.Used.Unlock()
	p.Used.Clock = max(p.Used.Clock, int64(binary.LittleEndian.Uint64(b)))
	write(c, c.Args[1], p.Used.Clock, 1)
}

// processorTimeOf is the clock of another process, as clock_getcpuclockid(3) numbers it.
func processorTimeOf(pid int) (int64, error) {
	const whole = 2 // CPUCLOCK_SCHED of linux/posix-timers.h: of all threads
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|whole), &ts)
	return ts.Nano(), err
}

// usage tells what a process has used, or its children that it has waited for: what the kernel says of that is written by the time that the
// program would see it. Before Linux 5.19 a thread cannot be held there.
func (in *Answerer) usage(c *notify.Call, p *process.Asker) {
	if !in.holds {
		c.GoOn()
		return
	}
	what, used := "rusage", &p.Used.Self
	if int32(c.Args[0]) == unix.RUSAGE_CHILDREN {
		what, used = "rusage children", &p.Used.Children
	}
	err := trace.Answered(c, func() { in.used(c, p, what, used) })
	if err != nil && c.Waits() { // a debugger inside has it
		c.GoOn()
	}
}

// used gives again what the kernel has answered.
func (in *Answerer) used(c *notify.Call, p *process.Asker, what string, used *process.Usage) {
	var r unix.Rusage
	now := bytesOf(&r)
	if inspect.ReadMemory(c.Task, c.Args[1], now) != nil { // so could the kernel not write there
		return
	}
	if _, err := binary.Decode(p.Source.Asked(what, "", now), binary.NativeEndian, &r); err != nil {
		return
	}
	p.Used.Lock()
	defer p.Used.Unlock()
	used.User, used.System = max(used.User, r.Utime.Nano()), max(used.System, r.Stime.Nano()) // where nothing is recorded any more
	r.Utime, r.Stime = unix.NsecToTimeval(used.User), unix.NsecToTimeval(used.System)
	_ = inspect.WriteMemory(c.Task, c.Args[1], bytesOf(&r)) // a caller that is gone does not mind
}
