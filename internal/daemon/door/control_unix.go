//go:build linux || darwin || freebsd

package door

import (
	"errors"
	"net"
	"syscall"
)

// control calls ask with the descriptor of a connection.
func control(c net.Conn, ask func(fd int) error) error {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return errors.New("the connection has no descriptor")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var asked error
	if err := raw.Control(func(fd uintptr) { asked = ask(int(fd)) }); err != nil {
		return err
	}
	return asked
}
