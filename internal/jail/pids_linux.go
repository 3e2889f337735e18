package jail

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const maxPIDs = 16384 // processes and threads inside at once

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
