//go:build !windows

package exchange

import "syscall"

// The errors that sockets give here.
const (
	refusedHere = syscall.ECONNREFUSED
	resetHere   = syscall.ECONNRESET
)
