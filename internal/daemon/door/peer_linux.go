package door

import (
	"net"

	"golang.org/x/sys/unix"
)

// credentials returns who is at the other end, as the kernel knew it when it connected.
func credentials(c net.Conn) (Peer, error) {
	p := Peer{Unix: true, UID: -1}
	var cred *unix.Ucred
	err := control(c, func(fd int) (err error) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return p, err
	}
	p.UID, p.PID = int(cred.Uid), int(cred.Pid)
	return p, allowed(p.UID)
}
