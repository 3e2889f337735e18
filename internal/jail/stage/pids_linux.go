package stage

import (
	"os"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"golang.org/x/sys/unix"
)

// OpenLastPID opens the file that says which PID was given last. It works on the PID namespace of who writes it, through
// any /proc; the recorder opens it on the host, for a mount of the jail's own that is written to cannot become read-only.
// Where it cannot be had PIDs stay as they come.
func OpenLastPID() (*os.File, error) {
	f, err := os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0)
	if err != nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return f, nil
}

// setLastPID writes from the beginning of the file, which two of our stages share: the kernel passes over what is written elsewhere.
func setLastPID(fd, pid int) {
	unix.Pwrite(fd, strconv.AppendInt(nil, int64(pid), 10), 0)
}

// misnumbered reports whether the exec stage, which has pid, was to have filter.ProgramPID and came too late for it: it ends at once.
//
//go:norace
//go:nosplit
func misnumbered(pid int) bool { return pid > filter.ProgramPID && pid < filter.ChildPID }
