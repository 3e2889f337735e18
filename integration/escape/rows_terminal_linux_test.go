//go:build escape

package escape

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

var terminalRows = []row{
	{
		name: "typing into the caller's terminal", tried: "TIOCSTI on stdin, stdout and /dev/tty", how: "the program has a terminal of its own: what it types there it reads itself",
		terminal: true, untouched: nothingTyped, try: func(*inside) outcome {
			for _, path := range []string{"/proc/self/fd/0", "/dev/tty", "/dev/console"} {
				if fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0); err == nil {
					for _, c := range []byte("escape") {
						unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, pointer(&c))
					}
					unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
					unix.Close(fd)
				}
			}
			return held("its own terminal")
		},
	},
	{
		name: "the caller's terminal by name", tried: "opening the caller's /dev/pts/N, and every other", how: "a /dev/pts of its own; its terminal's name is /dev/console",
		terminal: true, untouched: nothingTyped, try: func(in *inside) outcome {
			names, err := filepath.Glob("/dev/pts/[0-9]*")
			if err != nil || len(names) > 0 {
				return out("/dev/pts has %v", names)
			}
			_, err = os.Open(in.Terminal)
			return refused("open", err, unix.ENOENT)
		},
	},
	{
		name: "the console and other terminals", tried: "TIOCCONS, TIOCSETD, TIOCLINUX, VT_ACTIVATE, /dev/tty0, /dev/tty1, /dev/ttyS0, /dev/vcs",
		how: "ENOTTY or EPERM; no such nodes", terminal: true, untouched: nothingTyped, try: func(*inside) outcome {
			sub := byte(6) // TIOCL_GETSHIFTSTATE
			list := []outcome{
				refused("TIOCCONS", ioctlOn(0, unix.TIOCCONS, 0), unix.EPERM, unix.EBUSY),
				refused("TIOCLINUX", ioctlOn(0, unix.TIOCLINUX, pointer(&sub)), unix.ENOTTY, unix.EPERM),
				refused("VT_ACTIVATE", ioctlOn(0, 0x5606, 1), unix.ENOTTY, unix.EPERM),
			}
			for _, name := range []string{"tty0", "tty1", "ttyS0", "vcs", "vcsa", "fb0", "input/event0", "uinput"} {
				_, err := os.Open("/dev/" + name)
				list = append(list, refused("/dev/"+name, err, unix.ENOENT))
			}
			return all(list...)
		},
	},
	{
		name: "the caller's session", tried: "making the caller's terminal ours (TIOCSCTTY), its process group (TIOCSPGRP)", how: "another session in another PID namespace: EPERM, ESRCH, EINVAL",
		terminal: true, untouched: nothingTyped, try: func(in *inside) outcome {
			pid := int32(in.Victim)
			return all(refused("TIOCSCTTY", ioctlOn(0, unix.TIOCSCTTY, 1), unix.EPERM),
				refused("TIOCSPGRP", ioctlOn(0, unix.TIOCSPGRP, pointer(&pid)), unix.ESRCH, unix.EPERM, unix.EINVAL, unix.ENOTTY))
		},
	},
}

func ioctlOn(fd int, request, arg uintptr) error {
	return call(unix.SYS_IOCTL, uintptr(fd), request, arg)
}

// nothingTyped is nil where nobody typed on the caller's terminal.
func nothingTyped(o *outside) error {
	if o.typed != 0 {
		return fmt.Errorf("%d bytes were typed on the caller's terminal", o.typed)
	}
	return nil
}

// waiting counts the bytes that a terminal's reader would get.
func waiting(tty *os.File) int {
	n, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ)
	if errors.Is(err, unix.EIO) {
		return 0
	}
	return n
}
