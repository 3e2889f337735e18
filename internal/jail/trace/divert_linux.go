package trace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"golang.org/x/sys/unix"
)

// Divert lets a notified call fail and changes the registers of its thread before the program sees that.
func Divert(c *notify.Call, change func(*Registers)) error {
	if err := Seize(c.Task, 0); err != nil {
		return fmt.Errorf("stop process %d: %w", c.Task, err)
	}
	err := unix.PtraceInterrupt(c.Task)
	c.Fail(unix.EIO)
	if err == nil {
		err = changeStopped(c.Task, change)
	}
	if err != nil {
		letDie(c.Task)
		return fmt.Errorf("change the call of process %d: %w", c.Task, err)
	}
	return nil
}

// Answered lets the kernel answer a notified call that does not block, and calls then before the program sees that. The call must not be
// interrupted while it waits: filter.Holds.
func Answered(c *notify.Call, then func()) error {
	if err := Seize(c.Task, 0); err != nil {
		return fmt.Errorf("stop process %d: %w", c.Task, err)
	}
	waits := c.Waits() // else its thread is gone, and another one has its number
	err := unix.PtraceInterrupt(c.Task)
	c.GoOn()
	var r Registers
	sig := 0
	if err == nil {
		sig, err = awaitStop(c.Task)
	}
	if err == nil {
		err = r.get(c.Task)
	}
	if err != nil {
		letDie(c.Task)
		return fmt.Errorf("see the call of process %d answered: %w", c.Task, err)
	}
	if waits && !r.restarts(c) { // before Linux 6.17 we may have taken it out of the call, which it makes again
		then()
	}
	Release(c.Task, sig)
	return nil
}

// changeStopped waits until a thread has stopped, which is at once, and lets it go on with other registers.
func changeStopped(tid int, change func(*Registers)) error {
	sig, err := awaitStop(tid)
	if err != nil {
		return err
	}
	var r Registers
	if err := r.get(tid); err != nil {
		return err
	}
	change(&r)
	if err := r.set(tid); err != nil {
		return err
	}
	return detach(tid, sig)
}

// Seize has the calling thread trace another one, which goes on.
func Seize(tid, options int) error { return ptrace(unix.PTRACE_SEIZE, tid, options) }

func detach(tid, sig int) error { return ptrace(unix.PTRACE_DETACH, tid, sig) }

func ptrace(request, tid, data int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Release lets go of a thread that stands still, which is given a signal if sig is not 0.
func Release(tid, sig int) {
	if detach(tid, sig) != nil {
		letDie(tid)
	}
}

// letDie lets go of a thread that could not be changed, which mostly is dead: others wait until its tracer has heard of it.
func letDie(tid int) {
	for detach(tid, 0) != nil {
		if _, err := awaitStop(tid); err != nil {
			return
		}
	}
}

// awaitStop returns the signal that the thread is to be given when it goes on. The error is ESRCH when it died instead, and
// ECHILD when that was told before.
func awaitStop(tid int) (sig int, err error) {
	var ws unix.WaitStatus
	switch _, err := wait(tid, &ws, 0); {
	case err != nil:
		return 0, err
	case !ws.Stopped():
		return 0, unix.ESRCH
	}
	return signalOf(ws), nil
}

// signalOf is the signal that stopped a thread; 0 where we did.
func signalOf(ws unix.WaitStatus) int {
	switch uint32(ws) >> 16 {
	case unix.PTRACE_EVENT_STOP, unix.PTRACE_EVENT_EXEC:
		return 0
	}
	return int(ws.StopSignal())
}

// AwaitExec waits until a thread of process pid, which was seized with PTRACE_O_TRACEEXEC, stands still, and tells under which number, and
// the signal that it is to be given; 0 where it is gone. It has executed another program, or its call is made again or has failed.
func AwaitExec(tid, pid int) (stopped, sig int, executed bool) {
	_ = unix.PtraceInterrupt(tid) // for an execve that fails; one that succeeded forgets it
	at, ws, err := tracee(tid, pid)
	if err != nil || !ws.Stopped() {
		return 0, 0, false
	}
	return at, signalOf(ws), uint32(ws)>>16 == unix.PTRACE_EVENT_EXEC
}

// tracee waits for news of the one thread that this thread traces, and tells which of its two numbers it has by now. This thread may
// have other children, which somebody else waits for.
func tracee(tid, pid int) (at int, ws unix.WaitStatus, err error) {
	if tid == pid || pid == 0 {
		at, err = wait(tid, &ws, 0)
		return at, ws, err
	}
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		at, was := wait(tid, &ws, unix.WNOHANG)
		if at != 0 {
			return at, ws, nil
		}
		at, is := wait(pid, &ws, unix.WNOHANG) // second: what has taken this number meanwhile is found
		if at != 0 || was != nil && is != nil {
			return at, ws, is
		}
		time.Sleep(pause)
	}
}

// wait tells 0 for nothing new.
func wait(n int, ws *unix.WaitStatus, flags int) (int, error) {
	for {
		at, err := unix.Wait4(n, ws, unix.WALL|unix.WNOTHREAD|flags, nil)
		if !errors.Is(err, unix.EINTR) {
			return max(at, 0), err
		}
	}
}

// StackOf is the stack pointer of a thread that stands still.
func StackOf(tid int) (uint64, error) {
	var r Registers
	if err := r.get(tid); err != nil {
		return 0, err
	}
	return r.Stack(), nil
}

// SetStack changes the stack pointer of a thread that stands still.
func SetStack(tid int, sp uint64) error {
	var r Registers
	if err := r.get(tid); err != nil {
		return err
	}
	r.setStack(sp)
	return r.set(tid)
}

// The stub is a program of some hundred bytes that waits for one byte and ends with it: see stubCode. It has no place in the
// file system: its descriptor is put into the caller, which then executes that instead of its program's path.

// stubAddr is where the stub is loaded.
const stubAddr = 0x400000

// stubFile is the stub as an ELF file: two headers, and the code after them.
func stubFile() []byte {
	const headers = 64 + 56 // bytes
	var b bytes.Buffer
	size := uint64(headers + len(stubCode))
	head := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(stubMachine), Version: uint32(elf.EV_CURRENT),
		Entry: stubAddr + headers, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1}
	copy(head.Ident[:], elf.ELFMAG)
	head.Ident[elf.EI_CLASS], head.Ident[elf.EI_DATA], head.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	load := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: stubAddr, Paddr: stubAddr,
		Filesz: size, Memsz: size, Align: 0x10000}
	for _, part := range []any{head, load, stubCode} {
		binary.Write(&b, binary.LittleEndian, part) // to memory, of fixed sizes: no error
	}
	return b.Bytes()
}

// OpenStub makes the stub's file, in memory, where nobody can change it any more, and opens it for reading: a file that is open
// for writing cannot be executed.
func OpenStub() (int, error) {
	const name, flags = "tapedeck-stub", unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	w, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all can be executed
		w, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	defer unix.Close(w)
	_, err = unix.Write(w, stubFile())
	if err == nil {
		err = unix.Fchmod(w, 0o555)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(w), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		return -1, os.NewSyscallError("memfd", err)
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(w), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}
