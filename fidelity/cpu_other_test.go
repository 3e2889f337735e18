//go:build !unix

package fidelity

import "time"

var started = time.Now()

// cpuTime is the clock, where the system tells nothing better.
func cpuTime() time.Duration { return time.Since(started) }
