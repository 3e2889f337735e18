//go:build unix

package door

import (
	"math"

	"golang.org/x/sys/unix"
)

// Descriptors is how many the process may have.
func Descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) //nolint:unconvert // it has a sign on FreeBSD
}
