//go:build unix

package deck

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// The signals of jobs and terminals.
const (
	sigHUP   = syscall.SIGHUP
	sigTSTP  = syscall.SIGTSTP
	sigSTOP  = syscall.SIGSTOP
	sigTTIN  = syscall.SIGTTIN
	sigTTOU  = syscall.SIGTTOU
	sigCONT  = syscall.SIGCONT
	sigWINCH = syscall.SIGWINCH
)

// signalName returns "SIGTERM" and the like.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

// signalNamed is the signal whose signalName is name; 0 for none.
func signalNamed(name string) syscall.Signal { return unix.SignalNum(name) }

// isEIO reports the error of a terminal whose other side has gone.
func isEIO(err error) bool { return errors.Is(err, syscall.EIO) }
