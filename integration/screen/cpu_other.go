//go:build !unix

package main

import "time"

var begun = time.Now()

// spent is the time that went by: processor time is not known here.
func spent() time.Duration { return time.Since(begun) }
