package filter

import (
	"slices"

	"golang.org/x/sys/unix"
)

// absent are calls that the program is told this kernel does not have: io_uring does what a filter refuses, and memory of
// memfd_secret can be read by nobody else, paths and addresses in it neither.
var absent = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, SysMemfdSecret}

// SysMemfdSecret has the same number on every processor.
const SysMemfdSecret = 447

// forbidden are calls that reach outside of every namespace with no capability at all: the kernel's keys (whose requests
// start programs of the host), its programs and counters, its log, and files by handle instead of by a path through our
// mounts. Whatever needs a capability is refused by the kernel. ptrace and nested user namespaces stay inside.
var forbidden = []uint32{
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_SYSLOG, unix.SYS_OPEN_BY_HANDLE_AT,
}

// initOnly are calls whose first argument is a process or a thread of it, and which must not name our init: its limits could
// be lowered until it fails. Signals do not reach it: it has no handlers.
var initOnly = []uint32{unix.SYS_PRLIMIT64, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO}

// PIDs are an input of a program, and those that our own stages and their threads take differ from run to run: the
// program has this one, and its first child the other. Those of our threads lie below it.
const (
	ProgramPID = 100
	ChildPID   = 1000
)

// uffdUserModeOnly is UFFD_USER_MODE_ONLY of linux/userfaultfd.h. A userfaultfd without it holds up whoever reads the
// program's memory for as long as the program likes: us. Most kernels refuse it to users without capabilities anyway.
const uffdUserModeOnly = 1

// TypeMask is what of a socket's type is one; the rest are SOCK_CLOEXEC and SOCK_NONBLOCK.
const TypeMask = 0xf

// Always are the rules of every jail. What they let through is what ordinary programs do; each connect is notified, and so are sockets
// of other families, of raw types or of other protocols, which the recorder only ever refuses.
func Always() []Rule {
	rules := Each(Notify, unix.SYS_CONNECT)
	rules = append(rules, Each(Errno(unix.ENOSYS), absent...)...)
	rules = append(rules, Each(Errno(unix.EPERM), forbidden...)...)
	for _, nr := range initOnly { // 0 is the caller
		rules = append(rules, Rule{nr, [][]Condition{{NotEqual(0, 0, ProgramPID), Below(0, ChildPID)}}, Errno(unix.EPERM), Next})
	}
	rules = append(rules, Rule{unix.SYS_USERFAULTFD, [][]Condition{{Bits(0, uffdUserModeOnly)}}, Allow, Errno(unix.EPERM)})
	return slices.Concat(rules, socketPairs(), sockets())
}

// connected holds for Unix sockets that must connect before they send: what is asked where is in the path that they connect to.
var connected = Masked(1, TypeMask, unix.SOCK_STREAM, unix.SOCK_SEQPACKET)

func socketPairs() []Rule {
	return []Rule{
		{unix.SYS_SOCKETPAIR, [][]Condition{{NotEqual(0, unix.AF_UNIX)}}, Errno(unix.EOPNOTSUPP), Next}, // as the kernel says it of nearly every family
		{unix.SYS_SOCKETPAIR, [][]Condition{{connected}}, Allow, Notify},
	}
}

// sockets decide a socket call: Unix ones are let through as what must connect, netlink ones all, for they are the network
// namespace's own, and Internet ones as TCP (plain or multipath) and UDP.
func sockets() []Rule {
	unixSocket, internet := Equal(0, unix.AF_UNIX), Equal(0, unix.AF_INET, unix.AF_INET6)
	return []Rule{
		{unix.SYS_SOCKET, [][]Condition{
			{unixSocket, connected},
			{Equal(0, unix.AF_NETLINK)},
			{internet, Masked(1, TypeMask, unix.SOCK_STREAM), Equal(2, 0, unix.IPPROTO_TCP, unix.IPPROTO_MPTCP)},
			{internet, Masked(1, TypeMask, unix.SOCK_DGRAM), Equal(2, 0, unix.IPPROTO_UDP)},
		}, Allow, Next},
		{unix.SYS_SOCKET, [][]Condition{{unixSocket}}, Errno(unix.ESOCKTNOSUPPORT), Notify},
	}
}
