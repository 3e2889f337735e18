//go:build unix

package bench

import (
	"os/exec"
	"syscall"
)

// asGroup makes a command a process group of its own, all of which ends when its context does: go test runs a program of
// its own, and a recorder another.
func asGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
