package trace

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// awaitStop returns the signal that the thread is to be given when it goes on. The error is ESRCH when it died instead, and
// ECHILD when that was told before.
func awaitStop(tid int) (sig int, err error) {
	var ws unix.WaitStatus
	switch _, err := wait(tid, &ws, 0); {
	case err != nil:
		return 0, err
	case !ws.Stopped():
		return 0, unix.ESRCH
	}
	return signalOf(ws), nil
}

// signalOf is the signal that stopped a thread; 0 where we did.
func signalOf(ws unix.WaitStatus) int {
	switch uint32(ws) >> 16 {
	case unix.PTRACE_EVENT_STOP, unix.PTRACE_EVENT_EXEC:
		return 0
	}
	return int(ws.StopSignal())
}

// AwaitExec waits until a thread of process pid, which was seized with PTRACE_O_TRACEEXEC, stands still, and tells under which number, and
// the signal that it is to be given; 0 where it is gone. It has executed another program, or its call is made again or has failed.
func AwaitExec(tid, pid int) (stopped, sig int, executed bool) {
	_ = unix.PtraceInterrupt(tid) // for an execve that fails; one that succeeded forgets it
	at, ws, err := tracee(tid, pid)
	if err != nil || !ws.Stopped() {
		return 0, 0, false
	}
	return at, signalOf(ws), uint32(ws)>>16 == unix.PTRACE_EVENT_EXEC
}

// tracee waits for news of the one thread that this thread traces, and tells which of its two numbers it has by now. This thread may
// have other children, which somebody else waits for.
func tracee(tid, pid int) (at int, ws unix.WaitStatus, err error) {
	if tid == pid || pid == 0 {
		at, err = wait(tid, &ws, 0)
		return at, ws, err
	}
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		at, was := wait(tid, &ws, unix.WNOHANG)
		if at != 0 {
			return at, ws, nil
		}
		at, is := wait(pid, &ws, unix.WNOHANG) // second: what has taken this number meanwhile is found
		if at != 0 || was != nil && is != nil {
			return at, ws, is
		}
		time.Sleep(pause)
	}
}

// wait tells 0 for nothing new.
func wait(n int, ws *unix.WaitStatus, flags int) (int, error) {
	for {
		at, err := unix.Wait4(n, ws, unix.WALL|unix.WNOTHREAD|flags, nil)
		if !errors.Is(err, unix.EINTR) {
			return max(at, 0), err
		}
	}
}

// StackOf is the stack pointer of a thread that stands still.
func StackOf(tid int) (uint64, error) {
	var r Registers
	if err := r.get(tid); err != nil {
		return 0, err
	}
	return r.Stack(), nil
}
