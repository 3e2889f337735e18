//go:build unix

package procgroup

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"golang.org/x/sys/unix"
)

// CanRunOutside says that the processes of a program can be ended together.
const CanRunOutside = true

// Own gives the program a process group of its own and, where tty is one of its streams, a session with that as its
// terminal: what it starts can then be ended with it.
func Own(cmd *exec.Cmd, tty int) {
	if tty < 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: tty}
}

// terminalSignals are those that a terminal sends to a whole process group.
var terminalSignals = []syscall.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGWINCH,
}

// Signal sends what a terminal sends to the program's group, anything else to the program alone.
func Signal(pid int, sig syscall.Signal) error {
	if slices.Contains(terminalSignals, sig) {
		pid = -pid
	}
	return syscall.Kill(pid, sig)
}

// Kill ends a process group. One that is empty has ended, and so, on macOS, has one of which only the dead are left.
func Kill(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		return nil
	}
	return err
}

// ExitOf is how a program ended.
func ExitOf(st *os.ProcessState) jail.Exit {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return jail.Exit{Signal: ws.Signal()}
	}
	return jail.Exit{Code: st.ExitCode()}
}

// The signals of jobs and terminals.
const (
	SigHUP   = syscall.SIGHUP
	SigTSTP  = syscall.SIGTSTP
	SigSTOP  = syscall.SIGSTOP
	SigTTIN  = syscall.SIGTTIN
	SigTTOU  = syscall.SIGTTOU
	SigCONT  = syscall.SIGCONT
	SigWINCH = syscall.SIGWINCH
)

// Name returns "SIGTERM" and the like.
func Name(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return s.String()
}

// Named is the signal whose signalName is name; 0 for none.
func Named(name string) syscall.Signal { return unix.SignalNum(name) }

// IsEIO reports the error of a terminal whose other side has gone.
func IsEIO(err error) bool { return errors.Is(err, syscall.EIO) }

// Passed are the signals to a recorder that go to its program; BrokenPipe is that of a pipe that nobody reads.
var (
	Passed     = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
	BrokenPipe = []os.Signal{syscall.SIGPIPE}
)
