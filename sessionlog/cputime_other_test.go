//go:build !unix

package sessionlog

import "time"

var started = time.Now()

// spent returns the time that has passed: this system is not asked for the processor's.
func spent() time.Duration { return time.Since(started) }
