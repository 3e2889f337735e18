package filter

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

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
	const listener, held = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	// Without a filter the kernel looks at the flags alone.
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, listener|held, 0); errno == unix.EFAULT {
		return listener | held
	}
	return listener
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
