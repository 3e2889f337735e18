//go:build darwin || freebsd

package door

import (
	"net"

	"golang.org/x/sys/unix"
)

// credentials returns who is at the other end, as the kernel knew it when it connected.
func credentials(c net.Conn) (Peer, error) {
	p := Peer{Unix: true, UID: -1}
	var cred *unix.Xucred
	err := control(c, func(fd int) (err error) {
		cred, err = unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		return err
	})
	if err != nil {
		return p, err
	}
	p.UID = int(cred.Uid)
	return p, allowed(p.UID)
}
