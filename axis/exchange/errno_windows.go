package exchange

import "golang.org/x/sys/windows"

// The errors that sockets give here; package syscall has none of these names for them.
const (
	refusedHere = windows.WSAECONNREFUSED
	resetHere   = windows.WSAECONNRESET
)
