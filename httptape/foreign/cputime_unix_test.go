//go:build unix

package foreign

import (
	"syscall"
	"time"
)

// cpuTime is the processor time that the process has used: on a machine that others use too it says more than a clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
