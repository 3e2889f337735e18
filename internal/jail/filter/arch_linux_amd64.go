package filter

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// X32Bit is in the numbers of x32 calls, which would slip past a filter of the others; 0 where there is no such second set of calls.
	X32Bit = 0x40000000

	// SysTime is time(2), SysOpen open(2); -1 where they are not there.
	SysTime = unix.SYS_TIME
	SysOpen = unix.SYS_OPEN
)
