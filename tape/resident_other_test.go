//go:build !linux

package tape_test

import "runtime"

// peakResident returns what the Go runtime has from the system: this one is not asked what of it is resident.
func peakResident() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased)
}
