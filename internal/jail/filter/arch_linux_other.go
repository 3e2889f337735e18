//go:build linux && !amd64 && !arm64

package filter

// No filter is written for this processor.
const (
	auditArch  = 0
	X32Bit     = 0
	mappedFrom = 0xffffffff
	SysTime    = -1
	SysOpen    = -1
)
