package trace

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"golang.org/x/sys/unix"
)

// Divert lets a notified call fail and changes the registers of its thread before the program sees that.
func Divert(c *notify.Call, change func(*Registers)) error {
	if err := Seize(c.Task, 0); err != nil {
		return fmt.Errorf("stop process %d: %w", c.Task, err)
	}
	err := unix.PtraceInterrupt(c.Task)
	c.Fail(unix.EIO)
	if err == nil {
		err = changeStopped(c.Task, change)
	}
	if err != nil {
		letDie(c.Task)
		return fmt.Errorf("change the call of process %d: %w", c.Task, err)
	}
	return nil
}

// changeStopped waits until a thread has stopped, which is at once, and lets it go on with other registers.
func changeStopped(tid int, change func(*Registers)) error {
	sig, err := awaitStop(tid)
	if err != nil {
		return err
	}
	var r Registers
	if err := r.get(tid); err != nil {
		return err
	}
	change(&r)
	if err := r.set(tid); err != nil {
		return err
	}
	return detach(tid, sig)
}

// Seize has the calling thread trace another one, which goes on.
func Seize(tid, options int) error { return ptrace(unix.PTRACE_SEIZE, tid, options) }

func detach(tid, sig int) error { return ptrace(unix.PTRACE_DETACH, tid, sig) }

func ptrace(request, tid, data int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Release lets go of a thread that stands still, which is given a signal if sig is not 0.
func Release(tid, sig int) {
	if detach(tid, sig) != nil {
		letDie(tid)
	}
}

// letDie lets go of a thread that could not be changed, which mostly is dead: others wait until its tracer has heard of it.
func letDie(tid int) {
	for detach(tid, 0) != nil {
		if _, err := awaitStop(tid); err != nil {
			return
		}
	}
}
