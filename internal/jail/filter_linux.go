package jail

import (
	"errors"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. Arguments are 64 bits; a socket's three are ints, so their low halves count. Both
// processors are little-endian.
const (
	dataNr   = 0
	dataArch = 4
	dataArg0 = 16
	dataArg1 = 24
	dataArg2 = 32

	dataHigh = 4 // from the low half of an argument to its high one
)

func dataArg(n int) uint32 { return uint32(dataArg0 + 8*n) }

const (
	retAllow  = unix.SECCOMP_RET_ALLOW
	retNotify = unix.SECCOMP_RET_USER_NOTIF
	retKill   = unix.SECCOMP_RET_KILL_PROCESS
	retEPERM  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	retENOSYS = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retNoPair = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
	retNoType = unix.SECCOMP_RET_ERRNO | uint32(unix.ESOCKTNOSUPPORT)
)

// absent are calls that the program is told this kernel does not have: io_uring does what a filter refuses, and memory of
// memfd_secret can be read by nobody else, paths and addresses in it neither.
var absent = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, sysMemfdSecret}

// sysMemfdSecret has the same number on every processor.
const sysMemfdSecret = 447

// forbidden are calls that reach outside of every namespace with no capability at all: the kernel's keys (whose requests
// start programs of the host), its programs and counters, its log, and files by handle instead of by a path through our
// mounts. Whatever needs a capability is refused by the kernel. ptrace and nested user namespaces stay inside.
var forbidden = []uint32{
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_SYSLOG, unix.SYS_OPEN_BY_HANDLE_AT,
}

// initOnly are calls whose first argument is a process or a thread of it, and which must not name our init: its limits could
// be lowered until it fails. Signals do not reach it: see defaultSignals.
var initOnly = []uint32{unix.SYS_PRLIMIT64, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO}

// uffdUserModeOnly is UFFD_USER_MODE_ONLY of linux/userfaultfd.h. A userfaultfd without it holds up whoever reads the
// program's memory for as long as the program likes: us. Most kernels refuse it to users without capabilities anyway.
const uffdUserModeOnly = 1

// filterProgram is the one filter of a jail. What it lets through is what ordinary programs do; socket calls of other
// families, of raw types or of other protocols go to the recorder, which only ever refuses them. What o names goes there too, and
// most of it on from there.
//
// The kernel runs no filter for a call whose number alone lets it pass (since Linux 5.11 it knows those), so only calls
// whose arguments count pay for it: reads of a clock and opens come first.
func filterProgram(o notified) ([]bpf.RawInstruction, error) {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: retKill},
		bpf.LoadAbsolute{Off: dataNr, Size: 4},
	}
	if x32Bit != 0 {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: x32Bit, SkipTrue: 1}, bpf.RetConstant{Val: retENOSYS})
	}
	if o.Inputs {
		p = append(p, inputRules(o)...)
		p = append(p, askedRules()...)
	}
	if o.Watch {
		p = append(p, watchRules()...)
	}
	if o.Spawns {
		p = append(p, whenEqual(unix.SYS_EXECVE, retNotify)...)
		p = append(p, whenEqual(unix.SYS_EXECVEAT, retNotify)...)
	}
	p = append(p, whenEqual(unix.SYS_CONNECT, retNotify)...)
	for _, nr := range absent {
		p = append(p, whenEqual(nr, retENOSYS)...)
	}
	for _, nr := range forbidden {
		p = append(p, whenEqual(nr, retEPERM)...)
	}
	for _, nr := range initOnly {
		p = append(p, notInit(nr)...)
	}
	p = append(p, whenBits(unix.SYS_USERFAULTFD, dataArg0, uffdUserModeOnly, retAllow, retEPERM)...)
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKETPAIR, SkipTrue: uint8(3 + len(unixRules(0)))},
		bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		bpf.RetConstant{Val: retNoPair}) // as the kernel says it of nearly every family
	p = append(p, unixRules(retNotify)...)
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipTrue: 1},
		bpf.RetConstant{Val: retAllow})
	return bpf.Assemble(append(p, socketRules()...))
}

func whenEqual(val, ret uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: val, SkipTrue: 1},
		bpf.RetConstant{Val: ret},
	}
}

// whenBits decides a call by whether an argument has one of bits.
func whenBits(nr, arg, bits, set, clear uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 4},
		bpf.LoadAbsolute{Off: arg, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipTrue: 1},
		bpf.RetConstant{Val: clear},
		bpf.RetConstant{Val: set},
	}
}

// watchRules notify the calls that change files.
func watchRules() []bpf.Instruction {
	var opens, rest []bpf.Instruction
	for _, nr := range slices.Sorted(maps.Keys(watchedCalls)) {
		c := watchedCalls[nr]
		switch c.when {
		case ifWriting:
			opens = append(opens, whenWriting(nr, dataArg(c.at))...)
		case ifPointer:
			rest = append(rest, whenPointer(nr, dataArg(c.paths[0].path))...)
		default:
			rest = append(rest, whenEqual(nr, retNotify)...)
		}
	}
	return append(opens, rest...)
}

// whenWriting notifies an open that may change a file. With O_PATH nothing else counts, and what O_TMPFILE makes has no
// name until linkat gives it one.
func whenWriting(nr, flags uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 5},
		bpf.LoadAbsolute{Off: flags, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: writeFlags, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: noNameFlags, SkipTrue: 1},
		bpf.RetConstant{Val: retNotify},
		bpf.RetConstant{Val: retAllow},
	}
}

// Flags of an open: those that may change a file, and those with which no file that has a name is changed.
const (
	writeFlags  = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC
	noNameFlags = unix.O_PATH | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// whenPointer notifies a call whose argument, of 64 bits, is not null.
func whenPointer(nr, arg uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 6},
		bpf.LoadAbsolute{Off: arg, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 3},
		bpf.LoadAbsolute{Off: arg + dataHigh, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		bpf.RetConstant{Val: retAllow},
		bpf.RetConstant{Val: retNotify},
	}
}

// notInit refuses a call whose first argument is process 1 or one of its threads, whose numbers lie below childPID; 0 is the
// caller.
func notInit(nr uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 6},
		bpf.LoadAbsolute{Off: dataArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: programPID, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: childPID, SkipTrue: 1},
		bpf.RetConstant{Val: retEPERM},
		bpf.LoadAbsolute{Off: dataNr, Size: 4},
	}
}

// unixRules let Unix sockets be made that must connect before they send. To others, of datagrams, other happens.
func unixRules(other uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: typeMask},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		bpf.RetConstant{Val: other},
		bpf.RetConstant{Val: retAllow},
	}
}

const typeMask = 0xf // of a socket; the rest are SOCK_CLOEXEC and SOCK_NONBLOCK

// socketRules decide a socket call: Unix ones are let through as what must connect, netlink ones all, for they are the network
// namespace's own, and Internet ones as TCP (plain or multipath) and UDP.
func socketRules() []bpf.Instruction {
	p := []bpf.Instruction{bpf.LoadAbsolute{Off: dataArg0, Size: 4}}
	p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_UNIX, SkipTrue: uint8(len(unixRules(0)))})
	p = append(p, unixRules(retNoType)...)
	p = append(p, whenEqual(unix.AF_NETLINK, retAllow)...)
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
		bpf.RetConstant{Val: retNotify},
		bpf.LoadAbsolute{Off: dataArg1, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: typeMask},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_DGRAM, SkipTrue: 7},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1},
		bpf.RetConstant{Val: retNotify},
		bpf.LoadAbsolute{Off: dataArg2, Size: 4}, // stream
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 7},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 6},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_MPTCP, SkipTrue: 5},
		bpf.RetConstant{Val: retNotify},
		bpf.LoadAbsolute{Off: dataArg2, Size: 4}, // dgram
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_UDP, SkipTrue: 1},
		bpf.RetConstant{Val: retNotify},
		bpf.RetConstant{Val: retAllow})
	return p
}

// installFilter puts the filter on this thread and returns the descriptor of its notifications. no_new_privs must be
// set.
func installFilter(o notified) (int, error) {
	raw, err := filterProgram(o)
	if err != nil {
		return -1, err
	}
	prog := sockFilters(raw)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	// A signal must not restart a call whose files are being kept, whose streams were replaced, or whose socket is being connected;
	// Linux 5.19 and newer can hold it off.
	fd, err := setFilter(flags|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &fprog)
	if errors.Is(err, unix.EINVAL) {
		fd, err = setFilter(flags, &fprog)
	}
	return fd, err
}

func setFilter(flags uintptr, prog *unix.SockFprog) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func sockFilters(raw []bpf.RawInstruction) []unix.SockFilter {
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out
}
