package filter

import (
	"errors"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Install puts a filter of rules on this thread and returns the descriptor of its notifications. no_new_privs must be set.
func Install(rules []Rule) (int, error) {
	raw, err := bpf.Assemble(slices.Concat(processor(), Assemble(rules, Allow)))
	if err != nil {
		return -1, err
	}
	prog := Raw(raw)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	// A signal must not restart a call whose files are being kept, whose streams were replaced, or whose socket is being connected;
	// Linux 5.19 and newer can hold it off.
	fd, err := set(flags|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &fprog)
	if errors.Is(err, unix.EINVAL) {
		fd, err = set(flags, &fprog)
	}
	return fd, err
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

func set(flags uintptr, prog *unix.SockFprog) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
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
