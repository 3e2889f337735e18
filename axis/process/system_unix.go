//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const onWindows = false

// ownGroup has cmd started as a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends all that is left of the group of cmd. It comes before cmd.Wait, so that the number is still this group's.
func endGroup(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }

// resultOf is how a process ended.
func resultOf(st *os.ProcessState) *Result {
	w, ok := st.Sys().(syscall.WaitStatus)
	if ok && w.Signaled() {
		return &Result{ExitCode: 128 + int(w.Signal()), Signal: unix.SignalName(w.Signal())}
	}
	return &Result{ExitCode: st.ExitCode()}
}
