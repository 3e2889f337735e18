package process

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// awaitExit waits for the end of cmd and leaves it unreaped: the number of its group is nobody else's until cmd.Wait.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // Wait says what is wrong
		}
	}
}
