package terminal

import "golang.org/x/sys/unix"

// The requests that get and set the modes of a terminal; the latter waits until what was written has been shown.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETAW
)
