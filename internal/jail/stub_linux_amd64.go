package jail

import (
	"debug/elf"

	"golang.org/x/sys/unix"
)

const stubMachine = elf.EM_X86_64

// stubCode reads one byte from descriptor 0 and ends with it, or with 0.
var stubCode = []byte{
	0x31, 0xc0, //                   xor  eax, eax    read(
	0x50,       //                   push rax
	0x54,       //                   push rsp
	0x5e,       //                   pop  rsi           a zero on the stack,
	0x31, 0xff, //                   xor  edi, edi      from descriptor 0,
	0x6a, 0x01, //                   push 1
	0x5a,       //                   pop  rdx           one byte)
	0x0f, 0x05, //                   syscall
	0x0f, 0xb6, 0x3e, //             movzx edi, byte [rsi]
	0xb8, 0xe7, 0x00, 0x00, 0x00, // mov  eax, 231    exit_group
	0x0f, 0x05, //                   syscall
}

// registers are those of a stopped thread.
type registers struct{ unix.PtraceRegs }

func (r *registers) get(tid int) error { return unix.PtraceGetRegs(tid, &r.PtraceRegs) }
func (r *registers) set(tid int) error { return unix.PtraceSetRegs(tid, &r.PtraceRegs) }

const syscallSize = 2 // bytes of the instruction

// call makes the thread carry out another call instead of the one that was notified.
func (r *registers) call(req *seccompNotif, nr, a, b, c, d, e uint64) {
	r.Rip = req.IP - syscallSize
	r.Rax, r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8 = nr, a, b, c, d, e
	r.Orig_rax = ^uint64(0) // it is in no call any more: none is to be restarted
}

// result makes the notified call return v.
func (r *registers) result(req *seccompNotif, v uint64) {
	r.Rip, r.Rax, r.Orig_rax = req.IP, v, ^uint64(0)
}

func (r *registers) stack() uint64 { return r.Rsp }

// sysTime is time(2), sysOpen open(2); wallCalls are those that tell the wall time and nothing else.
const (
	sysTime = unix.SYS_TIME
	sysOpen = unix.SYS_OPEN
)

var wallCalls = []uint32{unix.SYS_GETTIMEOFDAY, sysTime}
