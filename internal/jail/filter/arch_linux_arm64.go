package filter

import "golang.org/x/sys/unix"

// What is not here has other values: see amd64.
const (
	auditArch  = unix.AUDIT_ARCH_AARCH64
	X32Bit     = 0
	mappedFrom = 0xf000
	SysTime    = -1
	SysOpen    = -1
)
