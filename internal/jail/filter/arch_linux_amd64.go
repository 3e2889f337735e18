package filter

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// X32Bit is in the numbers of x32 calls, which would slip past a filter of the others; 0 where there is no such second set of calls.
	X32Bit = 0x40000000
	// mappedFrom is the upper half of the lowest address at which something is mapped (Mapped).
	mappedFrom = 0x7f00

	// SysTime is time(2); -1 where it is not there.
	SysTime = unix.SYS_TIME
	// SysOpen is open(2); -1 where it is not there.
	SysOpen = unix.SYS_OPEN
)
