package connect

import (
	"encoding/binary"
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// A boundFile is what a Unix socket was bound to, as the kernel tells it.
type boundFile struct{ dev, inode uint32 }

// A Diag asks the kernel for the Unix sockets of one network namespace: that of its socket.
type Diag struct {
	mu  sync.Mutex
	fd  int
	buf []byte
}

// DiagOf takes over the socket.
func DiagOf(fd int) *Diag { return &Diag{fd: fd} }

// NewDiag asks for those of the caller's.
func NewDiag() (*Diag, error) {
	fd, err := DiagSocket()
	if err != nil {
		return nil, err
	}
	return &Diag{fd: fd}, nil
}

// DiagSocket is a socket that a Diag asks through.
func DiagSocket() (int, error) {
	return unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
}

// Close closes it; nil is none.
func (d *Diag) Close() {
	if d != nil {
		unix.Close(d.fd)
	}
}

// Of linux/unix_diag.h, and the kernel's number of the state of a listening socket.
const (
	unixDiagVFS  = 1
	udiagShowVFS = 2
	stateListen  = 10
)

// listening returns what the sockets are bound to that can be connected to.
func (d *Diag) listening() (map[boundFile]bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const head, ask = unix.NLMSG_HDRLEN, 24 // bytes: struct nlmsghdr, struct unix_diag_req
	var req [head + ask]byte
	order := binary.NativeEndian
	order.PutUint32(req[0:], uint32(len(req)))
	order.PutUint16(req[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	req[head] = unix.AF_UNIX
	order.PutUint32(req[head+4:], 1<<stateListen)
	order.PutUint32(req[head+12:], udiagShowVFS)
	if err := unix.Sendto(d.fd, req[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	if d.buf == nil {
		d.buf = make([]byte, 64<<10) // more than the kernel sends at once
	}
	out := make(map[boundFile]bool)
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if done, err := addListening(out, d.buf[:n]); done || err != nil {
			return out, err
		}
	}
}

// addListening reads the messages of one packet.
func addListening(out map[boundFile]bool, b []byte) (done bool, err error) {
	order := binary.NativeEndian
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(order.Uint32(b))
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return false, unix.EBADMSG
		}
		body := b[unix.NLMSG_HDRLEN:size]
		switch order.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) < 4 {
				return false, unix.EBADMSG
			}
			return false, unix.Errno(-int32(order.Uint32(body)))
		case unix.SOCK_DIAG_BY_FAMILY:
			const msg = 16 // bytes: struct unix_diag_msg
			if f, ok := vfsOf(body[min(msg, len(body)):]); ok {
				out[f] = true
			}
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return false, nil
}

// vfsOf finds the attribute that says what a socket is bound to.
func vfsOf(b []byte) (boundFile, bool) {
	const head = 4 // bytes: length, type
	order := binary.NativeEndian
	for len(b) >= head {
		size := int(order.Uint16(b))
		if size < head || size > len(b) {
			break
		}
		if order.Uint16(b[2:]) == unixDiagVFS && size >= head+8 {
			return boundFile{inode: order.Uint32(b[head:]), dev: order.Uint32(b[head+4:])}, true
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return boundFile{}, false
}
