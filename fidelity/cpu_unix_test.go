//go:build unix

package fidelity

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used of the processors, which says more than a clock where others use them too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
