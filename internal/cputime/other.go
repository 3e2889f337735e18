//go:build !unix

package cputime

import "time"

var begun = time.Now()

// Spent returns the time that has passed: this system is not asked for the processor's.
func Spent() time.Duration { return time.Since(begun) }
