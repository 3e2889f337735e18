//go:build escape

package escape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func tryRoutes(*inside) outcome {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return out("no lo: %v", err)
	}
	_, everything, err := net.ParseCIDR("192.0.2.0/24")
	if err != nil {
		return out("%v", err)
	}
	return all(
		refused("a route", errnoOf(netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: everything})), unix.EPERM),
		refused("a device", errnoOf(netlink.LinkAdd(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "escape0"}})), unix.EPERM, unix.EOPNOTSUPP),
		refused("lo up", errnoOf(netlink.LinkSetUp(lo)), unix.EPERM))
}

// tryVeth has every capability in a network of its own, and none in that of process 1.
func tryVeth(*inside) outcome {
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "escape0"}, PeerName: "escape1", PeerNamespace: netlink.NsPid(1)}
	err := errnoOf(netlink.LinkAdd(veth))
	if errors.Is(err, unix.EOPNOTSUPP) {
		return notTried("this kernel has no veth")
	}
	return refused("a veth pair", err, unix.EPERM, unix.ENODEV, unix.EINVAL)
}

// netlinkFamilies are those that speak of more than a network.
var netlinkFamilies = []struct {
	family int
	name   string
	kind   uint16 // of a message that asks for the state
}{
	{unix.NETLINK_AUDIT, "audit", 1000}, // AUDIT_GET
	{unix.NETLINK_KOBJECT_UEVENT, "uevent", 0x10},
	{unix.NETLINK_CONNECTOR, "connector", unix.NLMSG_DONE},
	{unix.NETLINK_SCSITRANSPORT, "scsi", 0x10},
	{unix.NETLINK_ISCSI, "iscsi", 0x10},
	{unix.NETLINK_SELINUX, "selinux", 0x10},
	{unix.NETLINK_ECRYPTFS, "ecryptfs", 0x10},
}

func tryNetlink(*inside) outcome {
	var list []outcome
	for _, f := range netlinkFamilies {
		list = append(list, askNetlink(f.family, f.name, f.kind))
	}
	return all(list...)
}

// askNetlink sends a message to the kernel and wants an error, or nothing, back.
func askNetlink(family int, name string, kind uint16) outcome {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return refused(name+" socket", err, unix.EPROTONOSUPPORT, unix.EPERM)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}); err != nil {
		return out("%s: %v", name, err)
	}
	msg := make([]byte, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint32(msg, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint16(msg[4:], kind)
	binary.NativeEndian.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return refused(name, err, unix.ECONNREFUSED, unix.EPERM)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return refused(name, err, unix.EAGAIN, unix.EPERM)
	}
	if n >= 20 && binary.NativeEndian.Uint16(buf[4:]) == unix.NLMSG_ERROR {
		code := int32(binary.NativeEndian.Uint32(buf[16:]))
		if code == 0 {
			return out("%s: the kernel did as it was asked", name)
		}
		return refused(name, syscall.Errno(-code), unix.EPERM, unix.EINVAL, unix.EOPNOTSUPP, unix.ECONNREFUSED)
	}
	return out("%s: the kernel answered with %d bytes (%s)", name, n, fmt.Sprintf("%x", buf[:min(n, 24)]))
}
