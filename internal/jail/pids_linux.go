package jail

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const maxPIDs = 16384 // processes and threads inside at once

// PIDs are an input of a program, and those that our own stages and their threads take differ from run to run: the
// program has this one, and its first child the other, unless a thread of ours is made at that moment.
const (
	programPID = 100
	childPID   = 1000
)

// openLastPID opens the file that says which PID was given last. It works on the PID namespace of who writes it, through
// any /proc; the recorder opens it on the host, for a mount of the jail's own that is written to cannot become read-only.
// Where it cannot be had PIDs stay as they come.
func openLastPID() (*os.File, error) {
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

// limitPIDs holds a fork bomb. Before Linux 6.14 the limit is the whole machine's, and a uid 0 may write it: not ours.
func (w *world) limitPIDs() {
	if !kernelAtLeast(6, 14) {
		w.notCovered = append(w.notCovered, "the number of processes inside is not limited: Linux 6.14 and newer do")
		return
	}
	if err := os.WriteFile("/proc/sys/kernel/pid_max", strconv.AppendInt(nil, maxPIDs, 10), 0); err != nil {
		w.notCovered = append(w.notCovered, "the number of processes inside is not limited: "+err.Error())
	}
}

func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	f := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	if len(f) < 3 {
		return false
	}
	a, err1 := strconv.Atoi(f[0])
	b, err2 := strconv.Atoi(f[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}
