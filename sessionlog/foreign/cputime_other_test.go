//go:build !unix

package foreign

import (
	"testing"
	"time"
)

var begun = time.Now()

// cpuTime is the time that has passed: this system is not asked for the processor's.
func cpuTime(testing.TB) time.Duration { return time.Since(begun) }
