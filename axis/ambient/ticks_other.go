//go:build !linux

package ambient

import "time"

var began = time.Now()

// ticks is a monotonic clock, in ns. Nothing is answered with it here: there is no jail.
func ticks() int64 { return int64(time.Since(began)) }
