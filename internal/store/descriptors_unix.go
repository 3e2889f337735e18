//go:build unix

package store

import "golang.org/x/sys/unix"

// descriptors is how many run files stay open: as many as wanted, or a quarter of what the process may have.
func descriptors(wanted int) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 64
	}
	return int(min(uint64(wanted), max(uint64(limit.Cur)/4, 16))) //nolint:unconvert // it has a sign on FreeBSD
}
