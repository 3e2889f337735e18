//go:build !unix

package tape_test

import "time"

var begun = time.Now()

// spent returns the time that has passed: this system is not asked for the processor's.
func spent() time.Duration { return time.Since(begun) }
