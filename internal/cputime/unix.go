//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// Spent returns the time that this process has used processors for, all its threads together, in the system's calls too.
func Spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // a process may always ask for itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
