package openfiles

import "unsafe"

// A Limit is a struct rlimit of getrlimit(2).
type Limit struct{ Soft, Hard uint64 }

var atStart Limit

func init() {
	const nofile = 7                                                              // RLIMIT_NOFILE
	rawSyscall6(prlimit64, 0, nofile, 0, uintptr(unsafe.Pointer(&atStart)), 0, 0) // never fails for this process (getrlimit(2))
}

// AtStart returns that limit.
func AtStart() Limit { return atStart }

// What syscall exports to be called so: without its import, which would have it initialized first.
//
//go:linkname rawSyscall6 syscall.RawSyscall6
func rawSyscall6(number, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, errno uintptr)
