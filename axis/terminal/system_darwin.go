package terminal

import "golang.org/x/sys/unix"

// The requests that get and set the modes of a terminal, at once, once what was written has been shown, and with what was
// typed and not read thrown away; and the type of its modes.
const (
	getTermios   = unix.TIOCGETA
	setTermios   = unix.TIOCSETA
	setDrained   = unix.TIOCSETAW
	setFlushed   = unix.TIOCSETAF
	getForegroup = unix.TIOCGPGRP
	getUnread    = 0x4004667f // FIONREAD, which package unix does not name
)

type flag = uint64

// awaitExit cannot wait without reaping here.
func awaitExit(int) bool { return false }
