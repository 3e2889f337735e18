package trace

import (
	"debug/elf"

	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"golang.org/x/sys/unix"
)

const stubMachine = elf.EM_AARCH64

// stubCode reads one byte from descriptor 0 and ends with it, or with 0.
var stubCode = []uint32{
	0xd2800000, // mov  x0, #0          read(from descriptor 0,
	0xd10043ff, // sub  sp, sp, #16
	0xf90003ff, // str  xzr, [sp]
	0x910003e1, // mov  x1, sp            a zero on the stack,
	0xd2800022, // mov  x2, #1            one byte)
	0xd28007e8, // mov  x8, #63
	0xd4000001, // svc  #0
	0x394003e0, // ldrb w0, [sp]
	0xd2800bc8, // mov  x8, #94         exit_group
	0xd4000001, // svc  #0
}

// Registers are those of a stopped thread.
type Registers struct{ unix.PtraceRegsArm64 }

const ntPRStatus = 1 // NT_PRSTATUS of elf.h

func (r *Registers) get(tid int) error {
	return unix.PtraceGetRegSetArm64(tid, ntPRStatus, &r.PtraceRegsArm64)
}

func (r *Registers) set(tid int) error {
	return unix.PtraceSetRegSetArm64(tid, ntPRStatus, &r.PtraceRegsArm64)
}

const syscallSize = 4 // bytes of the instruction

// Call makes the thread carry out another call instead of the one that was notified. What may have to be restarted was decided
// before the thread stopped.
func (r *Registers) Call(of *notify.Call, nr, a, b, c, d, e uint64) {
	r.Pc = of.IP - syscallSize
	r.Regs[8] = nr
	copy(r.Regs[:], []uint64{a, b, c, d, e})
}

// Return makes the notified call return v.
func (r *Registers) Return(of *notify.Call, v uint64) {
	r.Pc, r.Regs[0] = of.IP, v
}

// restarts reports whether the thread is about to make the notified call again.
func (r *Registers) restarts(of *notify.Call) bool { return r.Pc == of.IP-syscallSize }

// Stack is the stack pointer.
func (r *Registers) Stack() uint64 { return r.Sp }

func (r *Registers) setStack(sp uint64) { r.Sp = sp }
