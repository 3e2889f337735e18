//go:build linux && !amd64

package inputs

import (
	"github.com/tapedeck-dev/tapedeck/internal/vdso"
)

// These are not known for this processor: the kernel's code is hidden from all programs, and the monotonic clock is the kernel's.
func askingWall() *vdso.Patch                      { return nil }
func askingGo(*goClock, uint64, int32) *vdso.Patch { return nil }
func askingAll() *vdso.Patch                       { return nil }

// Hides reports whether programs can be made to ask for the time.
func Hides() bool { return false }
