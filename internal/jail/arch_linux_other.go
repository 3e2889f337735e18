//go:build linux && !amd64 && !arm64

package jail

const (
	auditArch = 0 // no filter is written for this processor: Start says so
	x32Bit    = 0
)
