//go:build unix

package deck

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

const canRunOutside = true

// ownGroup gives the program a process group of its own and, where tty is one of its streams, a session with that as its
// terminal: what it starts can then be ended with it.
func ownGroup(cmd *exec.Cmd, tty int) {
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

// signalGroup sends what a terminal sends to the program's group, anything else to the program alone.
func signalGroup(pid int, sig syscall.Signal) error {
	if slices.Contains(terminalSignals, sig) {
		pid = -pid
	}
	return syscall.Kill(pid, sig)
}

// killGroup ends a process group. One that is empty has ended, and so, on macOS, has one of which only the dead are left.
func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) {
		return nil
	}
	return err
}

func exitState(st *os.ProcessState) jail.Exit {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return jail.Exit{Signal: ws.Signal()}
	}
	return jail.Exit{Code: st.ExitCode()}
}
