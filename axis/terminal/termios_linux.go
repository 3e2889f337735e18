package terminal

import "golang.org/x/sys/unix"

// The requests that get and set the modes of a terminal, at once, once what was written has been shown, and with what was
// typed and not read thrown away; and the type of its modes.
const (
	getTermios   = unix.TCGETS
	setTermios   = unix.TCSETS
	setDrained   = unix.TCSETSW
	setFlushed   = unix.TCSETSF
	getForegroup = unix.TIOCGPGRP
	getUnread    = unix.TIOCINQ
)

type flag = uint32
