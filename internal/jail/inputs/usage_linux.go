package inputs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
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

// usage tells what a process has used, but for its children.
func (in *Answerer) usage(c *notify.Call, p *process.Asker) {
	r, err := usageOf(p.Process.PID)
	if err != nil {
		c.GoOn()
		return
	}
	p.Used.Lock()
	defer p.Used.Unlock()
	neverBack(r, &p.Used) // one of two parts of a whole may be less than it was
	answer := p.Source.Asked("rusage", "", bytesOf(r))
	if _, err := binary.Decode(answer, binary.NativeEndian, r); err != nil {
		c.GoOn()
		return
	}
	neverBack(r, &p.Used)
	p.Used.User, p.Used.System = r.Utime.Nano(), r.Stime.Nano()
	if inspect.WriteMemory(c.Task, c.Args[1], bytesOf(r)) != nil {
		c.GoOn()
		return
	}
	c.Fail(0)
}

func neverBack(r *unix.Rusage, used *process.Used) {
	r.Utime = unix.NsecToTimeval(max(used.User, r.Utime.Nano()))
	r.Stime = unix.NsecToTimeval(max(used.System, r.Stime.Nano()))
}

// usageOf is what getrusage tells a process of itself, from its files of /proc. Switches of threads that have ended are in none.
func usageOf(pid int) (*unix.Rusage, error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return nil, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // behind the name
	total, err := processorTimeOf(pid)
	if err != nil || len(fields) < 13 {
		return nil, unix.ESRCH
	}
	r := &unix.Rusage{Minflt: number(fields[7]), Majflt: number(fields[9])}
	user, system := number(fields[11]), number(fields[12]) // which the kernel divides the time by
	if system > 0 {
		system = total / (user + system) * system
	}
	r.Utime, r.Stime = unix.NsecToTimeval(total-system), unix.NsecToTimeval(system)
	valuesOf(dir+"status", map[string]*int64{"VmHWM": &r.Maxrss})
	valuesOf(dir+"io", map[string]*int64{"read_bytes": &r.Inblock, "write_bytes": &r.Oublock})
	r.Inblock, r.Oublock = r.Inblock/512, r.Oublock/512
	tasks, err := os.ReadDir(dir + "task")
	for _, t := range tasks {
		valuesOf(dir+"task/"+t.Name()+"/status", map[string]*int64{"voluntary_ctxt_switches": &r.Nvcsw, "nonvoluntary_ctxt_switches": &r.Nivcsw})
	}
	return r, err
}

// valuesOf adds the numbers of a file of /proc to those that are meant; none of one that cannot be read.
func valuesOf(file string, to map[string]*int64) {
	text, _ := os.ReadFile(file)
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if v, words := to[string(name)], bytes.Fields(value); v != nil && len(words) > 0 {
			*v += number(words[0])
		}
	}
}

func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}
