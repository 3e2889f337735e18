package connect

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// The kernel chooses the port of a socket by chance, where a program binds it to port 0 or connects it as it is. Source.Port chooses
// in its place, so that a replay has the same one. A port that somebody has is left out: the next one is tried, at last any.

const portTries = 16

// Of the struct sockaddr_in and sockaddr_in6: where the port stands, and how short each may be.
const (
	portAt       = 2
	minSockaddr4 = 16
	minSockaddr6 = 24
)

// portIn is the port in an address of the Internet.
func portIn(addr []byte) (port uint16, ok bool) {
	if len(addr) < minSockaddr4 {
		return 0, false
	}
	switch binary.NativeEndian.Uint16(addr) {
	case unix.AF_INET:
	case unix.AF_INET6:
		if len(addr) < minSockaddr6 {
			return 0, false
		}
	default:
		return 0, false
	}
	return binary.BigEndian.Uint16(addr[portAt:]), true
}

// Bind answers a bind that leaves the port open with one of by, which is asked for then, and reports whether it was one.
func Bind(c *notify.Call, by func() process.Source) bool {
	addr := make([]byte, min(c.Args[2], maxSockaddr))
	if len(addr) < minSockaddr4 || inspect.ReadMemory(c.Task, c.Args[1], addr) != nil {
		return false
	}
	if port, ok := portIn(addr); !ok || port != 0 {
		return false
	}
	from := by()
	if from == nil {
		return false
	}
	bound := false
	err := inspect.WithTask(strconv.Itoa(c.Task), func(task int) error {
		fd, err := unix.PidfdGetfd(task, int(int32(c.Args[0])), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		bound = c.Waits()
		return bindSome(fd, addr, from)
	})
	if bound {
		c.Fail(errnoFor(err))
	}
	return bound
}

// bindSome binds a socket to an address and one of the ports that are chosen.
func bindSome(fd int, addr []byte, by process.Source) (err error) {
	for range portTries {
		binary.BigEndian.PutUint16(addr[portAt:], by.Port())
		if err = callWithAddr(unix.SYS_BIND, fd, addr); !errors.Is(err, unix.EADDRINUSE) {
			return err
		}
	}
	binary.BigEndian.PutUint16(addr[portAt:], 0)
	return callWithAddr(unix.SYS_BIND, fd, addr)
}

// connectFrom connects a socket from one of the ports that are chosen, where it has none yet. Before Linux 6.3 the kernel cannot be
// told which.
func connectFrom(fd int, addr []byte, by process.Source) error {
	if _, ok := portIn(addr); !ok || by == nil || portOf(fd) != 0 {
		return callWithAddr(unix.SYS_CONNECT, fd, addr)
	}
	for range portTries {
		p := int(by.Port())
		if unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipLocalPortRange, p|p<<16) != nil {
			break
		}
		err := callWithAddr(unix.SYS_CONNECT, fd, addr)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipLocalPortRange, 0)
		if !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EAGAIN) { // of datagrams
			return err
		}
	}
	err := callWithAddr(unix.SYS_CONNECT, fd, addr)
	by.Has(portOf(fd))
	return err
}

const ipLocalPortRange = 51 // IP_LOCAL_PORT_RANGE of linux/in.h

// portOf is the port that a socket has; 0 for none, or where that cannot be told.
func portOf(fd int) uint16 {
	at, err := unix.Getsockname(fd)
	if err != nil {
		return 0
	}
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return uint16(at.Port)
	case *unix.SockaddrInet6:
		return uint16(at.Port)
	}
	return 0
}
