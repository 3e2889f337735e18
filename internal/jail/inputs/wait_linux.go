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
	"github.com/tapedeck-dev/tapedeck/internal/jail/trace"
	"golang.org/x/sys/unix"
)

// From linux/futex.h.
const (
	futexRealtime   = 256 // FUTEX_CLOCK_REALTIME
	futexCommand    = 127 // without FUTEX_CLOCK_REALTIME and FUTEX_PRIVATE_FLAG
	futexLockPI     = 6
	futexWaitBitset = 9
)

// waitFor lets a call go on that waits for a moment of the wall time, shifted to the kernel's: the call is made again with its
// timeout below the stack of its thread, where nobody keeps anything but the handler of a signal that comes before the call: so the timeout
// is written when the call comes again. It comes as often as the kernel restarts it, for a signal or a stop: what is kept is forgotten with
// another wait. What the program gave is not written to, for it may wait for the same moment again.
func (in *Answerer) waitFor(c *notify.Call, p *process.Asker) {
	at, arg, size := in.timeout(c)
	made := in.shifted(c.Task, process.Timeout{})
	if at != 0 && in.again(c, at, &made) {
		if made.Is != "" {
			in.shifted(c.Task, made)
			_ = inspect.WriteMemory(c.Task, at, []byte(made.Is)) // a handler may have run there since
		}
		c.GoOn()
		return
	}
	behind := in.behind(c, p)
	if size == 0 || behind == 0 {
		c.GoOn()
		return
	}
	b := make([]byte, size)
	if inspect.ReadMemory(c.Task, at, b) != nil || !shift(b[size-16:], behind) {
		c.GoOn() // which the kernel refuses, or answers at once
		return
	}
	err := trace.Divert(c, func(r *trace.Registers) {
		below := belowOf(r.Stack())
		is := process.Timeout{At: below, Is: string(b), Nr: c.Nr, IP: c.IP}
		if inspect.WriteMemory(c.Task, below, b) != nil {
			below = at
			is.At, is.Is = at, "" // for this time alone: it may wait for another moment there
		}
		in.shifted(c.Task, is)
		args := c.Args
		args[arg] = below
		r.Call(c, uint64(c.Nr), args[0], args[1], args[2], args[3], args[4])
	})
	if err != nil {
		in.shifted(c.Task, process.Timeout{})
	}
}

// again reports whether a call with a timeout at that address is the one that was made, and not a later one of a function that is called
// deeper and has its own timeout there: that does not lie below its stack.
func (in *Answerer) again(c *notify.Call, at uint64, made *process.Timeout) bool {
	if same := made.At == at && made.Nr == c.Nr && made.IP == c.IP; !same || made.Is == "" {
		return same
	}
	b, _ := readAt(in.table.View.Proc, strconv.Itoa(c.Task)+"/syscall") // "NR A B C D E F STACK IP"
	f := bytes.Fields(b)
	if len(f) != 9 {
		return true // a signal has woken the thread: it comes again
	}
	stack, err := strconv.ParseUint(string(f[7]), 0, 64)
	return err != nil || belowOf(stack) == made.At
}

// readAt reads the beginning of a small file of a directory.
func readAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 512)
	k, err := unix.Read(fd, b)
	return b[:max(k, 0)], err
}

// shifted notes the timeout of the call that a thread makes again, and returns what was noted.
func (in *Answerer) shifted(task int, is process.Timeout) (was process.Timeout) {
	in.table.Lock()
	defer in.table.Unlock()
	th := in.table.Note(task)
	was, th.Shifted = th.Shifted, is
	return was
}

// behind is by how many ns the clock that a call waits for lies behind the kernel's.
func (in *Answerer) behind(c *notify.Call, p *process.Asker) int64 {
	switch {
	case c.Nr == unix.SYS_FUTEX && (c.Args[1]&futexRealtime != 0 || c.Args[1]&futexCommand == futexLockPI),
		c.Nr == unix.SYS_MQ_TIMEDSEND, c.Nr == unix.SYS_MQ_TIMEDRECEIVE,
		c.Nr == unix.SYS_TIMER_SETTIME, // of the wall time alone
		c.Nr == unix.SYS_CLOCK_NANOSLEEP && int32(c.Args[0]) == unix.CLOCK_REALTIME,
		c.Nr == unix.SYS_TIMERFD_SETTIME && in.timerClock(c) == unix.CLOCK_REALTIME:
		return p.Source.Behind()
	case c.Nr == unix.SYS_CLOCK_NANOSLEEP && int32(c.Args[0]) == unix.CLOCK_TAI:
		return p.Source.Behind() + (kernelLeapSeconds()-leapSeconds(p))*second
	case p.Ticks:
		return p.Source.TickBehind()
	}
	return 0
}

// belowStack is beyond the 128 bytes below its stack that a function may use on x86, by the size of a timeout and some.
const belowStack = 128 + 64

// belowOf is where the timeout lies of a thread with that stack.
func belowOf(stack uint64) uint64 { return (stack - belowStack) &^ 15 }

// timeout says where the timeout of a wait lies, in which argument, and how long it is: a struct timespec, or an itimerspec that
// ends with it. The size is 0 where it waits for no clock that is answered.
func (in *Answerer) timeout(c *notify.Call) (at uint64, arg, size int) {
	switch c.Nr {
	case unix.SYS_FUTEX:
		arg, size = 3, 16
	case unix.SYS_CLOCK_NANOSLEEP:
		arg, size = 2, 16
		if c := int32(c.Args[0]); c != unix.CLOCK_REALTIME && c != unix.CLOCK_MONOTONIC && c != unix.CLOCK_TAI {
			size = 0
		}
	case unix.SYS_MQ_TIMEDSEND, unix.SYS_MQ_TIMEDRECEIVE:
		arg, size = 4, 16
	case unix.SYS_TIMER_SETTIME:
		arg, size = 2, 32
		if !in.timerOfWallTime(c) {
			size = 0
		}
	default:
		arg, size = 2, 32
		if in.timerClock(c) < 0 {
			size = 0
		}
	}
	if c.Args[arg] == 0 {
		size = 0
	}
	return c.Args[arg], arg, size
}

// timerClock is the clock of the timer of a timerfd_settime; -1 for one that is not answered.
func (in *Answerer) timerClock(c *notify.Call) int {
	name := strconv.Itoa(c.Task) + "/fdinfo/" + strconv.Itoa(int(int32(c.Args[0])))
	b, err := readAt(in.table.View.Proc, name)
	if err != nil {
		return -1
	}
	for _, c := range []int{unix.CLOCK_REALTIME, unix.CLOCK_MONOTONIC} {
		if bytes.Contains(b, fmt.Appendf(nil, "\nclockid: %d\n", c)) {
			return c
		}
	}
	return -1
}

// timerOfWallTime reports it of the timer of a timer_settime; true where this kernel does not list timers.
func (in *Answerer) timerOfWallTime(c *notify.Call) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(c.Task) + "/timers")
	if err != nil {
		return true
	}
	_, timer, _ := bytes.Cut(append([]byte("\n"), b...), []byte("\nID: "+strconv.Itoa(int(int32(c.Args[0])))+"\n"))
	timer, _, _ = bytes.Cut(timer, []byte("\nID: "))
	return bytes.Contains(timer, []byte("ClockID: 0\n"))
}

// shift moves a struct timespec by ns. It is false for none, and for the zero that disarms a timer.
func shift(b []byte, ns int64) bool {
	sec, nsec := int64(binary.NativeEndian.Uint64(b)), int64(binary.NativeEndian.Uint64(b[8:]))
	if sec < 0 || nsec < 0 || nsec >= second || sec == 0 && nsec == 0 || sec > 1<<33 {
		return false
	}
	at := sec*second + nsec + ns
	binary.NativeEndian.PutUint64(b, uint64(at/second))
	binary.NativeEndian.PutUint64(b[8:], uint64(at%second))
	return true
}
