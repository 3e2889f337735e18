//go:build unix

package sessionlog

import (
	"syscall"
	"time"
)

// spent returns the time that this process has used a processor for, which other programs of the machine leave alone.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
