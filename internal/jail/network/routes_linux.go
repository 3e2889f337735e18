package network

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// loopbackUp brings the loopback device up and returns its number.
func loopbackUp() (index uint32, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, lo); err != nil {
		return 0, err
	}
	lo.SetUint16(lo.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, lo); err != nil {
		return 0, err
	}
	return lo.Uint32(), nil
}

// A route is one over the device of a number. Source, where it is valid, is what leaves by it without an address of its own.
type route struct {
	device             uint32
	table, kind, scope byte
	to                 netip.Prefix
	source             netip.Addr
}

// addRoutes adds routes one after the other (rtnetlink(7)), up to the first that fails.
func addRoutes(routes ...route) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, r := range routes {
		if err := unix.Sendto(fd, r.message(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		if err := acknowledged(fd); err != nil {
			return err
		}
	}
	return nil
}

// message is the one that adds r: struct nlmsghdr, struct rtmsg, attributes.
func (r *route) message() []byte {
	family := byte(unix.AF_INET)
	if r.to.Addr().Is6() {
		family = unix.AF_INET6
	}
	b := make([]byte, unix.SizeofNlMsghdr, 128)
	b = append(b, family, byte(r.to.Bits()), 0, 0, r.table, unix.RTPROT_BOOT, r.scope, r.kind, 0, 0, 0, 0)
	b = attribute(b, unix.RTA_DST, r.to.Addr().AsSlice())
	b = attribute(b, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, r.device))
	if r.source.IsValid() {
		b = attribute(b, unix.RTA_PREFSRC, r.source.AsSlice())
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.RTM_NEWROUTE)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	return b
}

// attribute appends one whose value takes whole words.
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	return append(binary.NativeEndian.AppendUint16(b, kind), value...)
}

// acknowledged reads what the kernel says of a message: an error number, 0 for none.
func acknowledged(fd int) error {
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return unix.EBADMSG
	}
	if errno := -int32(binary.NativeEndian.Uint32(b[unix.SizeofNlMsghdr:])); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}
