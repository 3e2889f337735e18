//go:build unix

package seal_test

import (
	"syscall"
	"time"
)

// spent returns the time that this process has used processors for, which other programs of the machine leave alone.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
