package terminal

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The requests that get and set the modes of a terminal, at once, once what was written has been shown, and with what was
// typed and not read thrown away; and the type of its modes.
const (
	getTermios   = unix.TCGETS
	setTermios   = unix.TCSETS
	setDrained   = unix.TCSETSW
	setFlushed   = unix.TCSETSF
	getForegroup = unix.TIOCGPGRP
	getUnread    = unix.TIOCINQ
)

type flag = uint32

// awaitExit waits until a child has ended and leaves it to be reaped, so that its number is nobody else's yet. It reports
// whether it could.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// A Job is our own process group as one of the jobs of the caller's shell, which can be stopped, and continued in the
// foreground or in the background.
type Job struct {
	// Stops tells that we are asked to stop (SIGTSTP) and have not: Suspend does. Continued tells that we were continued.
	Stops, Continued chan os.Signal
}

// discarded is how long one of our threads may take to wake and have us stopped. The kernel does not stop a group that no
// shell looks after.
const discarded = 50 * time.Millisecond

// NewJob returns our job, whose Close must be called. Where the caller ignores SIGTSTP we do too.
func NewJob() *Job {
	j := &Job{Stops: make(chan os.Signal, 1), Continued: make(chan os.Signal, 1)}
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(j.Stops, syscall.SIGTSTP)
	}
	signal.Notify(j.Continued, syscall.SIGCONT)
	return j
}

// Close stops telling.
func (j *Job) Close() {
	signal.Stop(j.Stops)
	signal.Stop(j.Continued)
}

// Suspend stops our process group, as Ctrl-Z does, and returns when we were continued. In a group that no shell of this
// session looks after it returns at once: nobody would continue it.
func (j *Job) Suspend() {
	if signal.Ignored(syscall.SIGTSTP) {
		return
	}
	select {
	case <-j.Continued: // of an earlier stop
	default:
	}
	old := swapAction(unix.SIGTSTP, nil)
	unix.Kill(0, unix.SIGTSTP)
	select {
	case <-j.Continued:
	case <-time.After(discarded):
	}
	swapAction(unix.SIGTSTP, old)
}

// An action is the kernel's struct sigaction of any processor, which is never looked into. All zero it is the default.
type action [8]uint64

// swapAction gives a signal another action, nil is the default, and returns the one before. Package signal never gives the
// default action back to a signal that it caught once.
func swapAction(sig unix.Signal, to *action) *action {
	if to == nil {
		to = new(action)
	}
	before := new(action)
	const setSize = 8 // of the kernel's signal set, in bytes
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(before)), setSize, 0, 0)
	if errno != 0 {
		return to
	}
	return before
}
