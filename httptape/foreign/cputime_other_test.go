//go:build !unix

package foreign

import "time"

var begun = time.Now()

// cpuTime is the time that has passed: this system is not asked for more.
func cpuTime() time.Duration { return time.Since(begun) }
