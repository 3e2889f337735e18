package filter

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A Verdict is what becomes of a call. The zero value leaves it to the rules that follow.
type Verdict uint32

// The verdicts beside those of Errno.
const (
	Next   Verdict = 0
	Allow  Verdict = unix.SECCOMP_RET_ALLOW
	Notify Verdict = unix.SECCOMP_RET_USER_NOTIF
)

// Errno makes a call fail.
func Errno(e unix.Errno) Verdict { return unix.SECCOMP_RET_ERRNO | Verdict(e) }

// A Rule decides the calls of a number: by Then where all conditions of one of When hold, or there are none, and else by Else.
type Rule struct {
	Nr         uint32
	When       [][]Condition
	Then, Else Verdict
}

// Each is a rule for each of some numbers, which decides all calls alike.
func Each(then Verdict, numbers ...uint32) []Rule {
	out := make([]Rule, len(numbers))
	for i, nr := range numbers {
		out[i] = Rule{Nr: nr, Then: then}
	}
	return out
}

// A Condition is one of an argument. Arguments have 64 bits, of which the lower half is looked at where nothing else is said: numbers of a
// call's kind, flags and descriptors are ints.
type Condition []bpf.Instruction

// Where a condition goes on, in its jumps: behind itself, or to what follows when it does not hold.
const (
	holds = 254
	fails = 255
)

// Equal holds for an argument that is one of values.
func Equal(arg int, values ...uint32) Condition { return equal(Condition{load(arg)}, values) }

// Masked holds for an argument that is one of values where mask has bits.
func Masked(arg int, mask uint32, values ...uint32) Condition {
	return equal(Condition{load(arg), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask}}, values)
}

func equal(c Condition, values []uint32) Condition {
	last := len(values) - 1
	for _, v := range values[:last] {
		c = append(c, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: holds})
	}
	return append(c, bpf.JumpIf{Cond: bpf.JumpEqual, Val: values[last], SkipFalse: fails})
}

// NotEqual holds for an argument that is none of values.
func NotEqual(arg int, values ...uint32) Condition {
	c := Condition{load(arg)}
	for _, v := range values {
		c = append(c, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: fails})
	}
	return c
}

// Below holds for an argument that is smaller than a value.
func Below(arg int, value uint32) Condition {
	return Condition{load(arg), bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: value, SkipTrue: fails}}
}

// From holds for an argument that is a value or larger.
func From(arg int, value uint32) Condition {
	return Condition{load(arg), bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: value, SkipFalse: fails}}
}

// Bits holds for an argument that has one of some bits, NoBits for one that has none.
func Bits(arg int, bits uint32) Condition {
	return Condition{load(arg), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipFalse: fails}}
}

// NoBits is what Bits is not.
func NoBits(arg int, bits uint32) Condition {
	return Condition{load(arg), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: bits, SkipTrue: fails}}
}

// NotNull holds for an argument that is a pointer to something.
func NotNull(arg int) Condition {
	high := argument(arg)
	high.Off += 4
	return Condition{
		load(arg), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: holds},
		high, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: fails},
	}
}

// Mapped holds for a pointer into what a process has mapped, its stack too, and not into its program or the heap behind that. Addresses are
// not randomised; where it is not known how they lie it never holds.
func Mapped(arg int) Condition {
	high := argument(arg)
	high.Off += 4
	return Condition{high, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: mappedFrom, SkipFalse: fails}}
}

// Offsets in struct seccomp_data. Both processors are little-endian.
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16
)

func load(arg int) bpf.Instruction { return argument(arg) }

func argument(arg int) bpf.LoadAbsolute {
	return bpf.LoadAbsolute{Off: uint32(dataArgs + 8*arg), Size: 4}
}

// Assemble writes the program of rules, which ends with last. The number of the call is loaded where it begins.
func Assemble(rules []Rule, last Verdict) []bpf.Instruction {
	p := []bpf.Instruction{bpf.LoadAbsolute{Off: dataNr, Size: 4}}
	for _, r := range rules {
		body := r.body()
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: r.Nr, SkipTrue: uint8(len(body))})
		p = append(p, body...)
	}
	return append(p, bpf.RetConstant{Val: uint32(last)})
}

// body is what is done with a call of the rule's number.
func (r *Rule) body() (p []bpf.Instruction) {
	if len(r.When) == 0 {
		return []bpf.Instruction{bpf.RetConstant{Val: uint32(r.Then)}}
	}
	for _, all := range r.When {
		var one []bpf.Instruction
		for _, c := range all {
			one = append(one, aimed(c, holds)...)
		}
		p = append(p, aimed(append(one, bpf.RetConstant{Val: uint32(r.Then)}), fails)...)
	}
	if r.Else == Next {
		return append(p, bpf.LoadAbsolute{Off: dataNr, Size: 4})
	}
	return append(p, bpf.RetConstant{Val: uint32(r.Else)})
}

// aimed has the jumps to where lead behind the last instruction.
func aimed(p []bpf.Instruction, where uint8) []bpf.Instruction {
	p = slices.Clone(p)
	for i := range p {
		j, ok := p[i].(bpf.JumpIf)
		if !ok {
			continue
		}
		behind := uint8(len(p) - 1 - i)
		if j.SkipTrue == where {
			j.SkipTrue = behind
		}
		if j.SkipFalse == where {
			j.SkipFalse = behind
		}
		p[i] = j
	}
	return p
}

// Program is the filter of rules as the kernel takes it.
func Program(rules []Rule) (*unix.SockFprog, error) {
	raw, err := bpf.Assemble(slices.Concat(processor(), Assemble(rules, Allow)))
	if err != nil {
		return nil, err
	}
	prog := Raw(raw)
	return &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}, nil
}

// Flags are those of seccomp(2) with which a filter is installed and returns the descriptor of its notifications. A signal must not restart
// a call whose files are being kept, whose streams were replaced, or whose socket is being connected; Linux 5.19 and newer can hold it off.
func Flags() uintptr {
	if Holds() {
		return listener | held
	}
	return listener
}

const (
	listener = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	held     = unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
)

// Holds reports whether a signal leaves a call alone that was received.
func Holds() bool {
	// Without a filter the kernel looks at the flags alone.
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listener|held, 0)
	return errno == unix.EFAULT
}

// processor ends who makes calls of another processor's numbers, and refuses those of x32.
func processor() []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
	}
	if X32Bit != 0 {
		p = append(p, bpf.LoadAbsolute{Off: dataNr, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: X32Bit, SkipTrue: 1},
			bpf.RetConstant{Val: uint32(Errno(unix.ENOSYS))})
	}
	return p
}

// Raw is a program as the kernel takes it.
func Raw(raw []bpf.RawInstruction) []unix.SockFilter {
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out
}

// Known reports whether filters can be written for this processor.
func Known() bool { return auditArch != 0 }

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
