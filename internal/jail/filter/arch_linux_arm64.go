package filter

import "golang.org/x/sys/unix"

// What is not here has other values: see amd64.
const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	X32Bit    = 0
	SysTime   = -1
	SysOpen   = -1
)

var SysStats []uint32
