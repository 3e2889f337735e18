package trace

import (
	"debug/elf"

	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
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

// Registers are those of a stopped thread.
type Registers struct{ unix.PtraceRegs }

func (r *Registers) get(tid int) error { return unix.PtraceGetRegs(tid, &r.PtraceRegs) }
func (r *Registers) set(tid int) error { return unix.PtraceSetRegs(tid, &r.PtraceRegs) }

const syscallSize = 2 // bytes of the instruction

// Call makes the thread carry out another call instead of the one that was notified.
func (r *Registers) Call(of *notify.Call, nr, a, b, c, d, e uint64) {
	r.Rip = of.IP - syscallSize
	r.Rax, r.Rdi, r.Rsi, r.Rdx, r.R10, r.R8 = nr, a, b, c, d, e
	r.Orig_rax = ^uint64(0) // it is in no call any more: none is to be restarted
}

// Return makes the notified call return v.
func (r *Registers) Return(of *notify.Call, v uint64) {
	r.Rip, r.Rax, r.Orig_rax = of.IP, v, ^uint64(0)
}

// restarts reports whether the thread is about to make the notified call again.
func (r *Registers) restarts(*notify.Call) bool {
	const erestartsys = -512
	return int64(r.Rax) == erestartsys //nolint:gosec // as the kernel returns errors
}

// Stack is the stack pointer.
func (r *Registers) Stack() uint64 { return r.Rsp }

func (r *Registers) setStack(sp uint64) { r.Rsp = sp }
