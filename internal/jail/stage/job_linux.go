package stage

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// A program on a terminal is a job of the init's session, as it would be of a shell's: a process group of its own, with a
// parent beside it in the session. In a session of its own it would be an orphan, which Ctrl-Z does not stop.

// takeTerminal makes fd the terminal of the init's session.
func (in *initProcess) takeTerminal(fd int) error {
	tty, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	in.tty = tty
	return unix.IoctlSetInt(tty, unix.TIOCSCTTY, 0)
}

// foreground gives the terminal to the program, or takes it from whichever group has it: who reads it then, or changes its
// modes, is stopped.
func (in *initProcess) foreground(on bool) {
	if in.tty < 0 {
		return
	}
	group := in.program
	if !on {
		group = unix.Getpgrp()
	}
	// Who is in the background itself would be stopped for this, unless it blocks the signal.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old unix.Sigset_t
	block := unix.Sigset_t{Val: [len(old.Val)]uint64{1 << (unix.SIGTTOU - 1)}}
	if unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old) != nil {
		return
	}
	unix.IoctlSetPointerInt(in.tty, unix.TIOCSPGRP, group)
	unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}
