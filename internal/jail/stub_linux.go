package jail

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// openStub makes the stub's file, in memory, where nobody can change it any more, and opens it for reading: a file that is open
// for writing cannot be executed.
func openStub() (int, error) {
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

// startStub makes the caller execute the stub instead: its call fails, before it gets back to the program it is stopped
// for a moment as a debugger does, and goes on with another call, execveat of the stub's descriptor. Nothing is written into
// its memory, which after vfork is its parent's too; the empty path of that call is the end of the one that it gave.
func (n *notifier) startStub(req *seccompNotif) error {
	at, err := n.addFD(req.ID, n.spawns.stub, -1, unix.O_CLOEXEC)
	if err != nil {
		return fmt.Errorf("give the stub to process %d: %w", req.PID, err)
	}
	path, argv, env := req.Args[0], req.Args[1], req.Args[2]
	if req.Nr == unix.SYS_EXECVEAT {
		path, argv, env = req.Args[1], req.Args[2], req.Args[3]
	}
	text, err := n.spawns.text.Path(int(req.PID), path)
	if err != nil {
		return fmt.Errorf("read a path of process %d: %w", req.PID, err)
	}
	n.spawns.onTheWay[int(req.PID)] = uint64(at)
	err = n.divert(req, func(r *registers) {
		r.call(req, unix.SYS_EXECVEAT, uint64(at), path+uint64(len(text)), argv, env, unix.AT_EMPTY_PATH)
	})
	if err != nil {
		delete(n.spawns.onTheWay, int(req.PID))
	}
	return err
}

// isStub reports whether this is the call that startStub made of another.
func (s *spawns) isStub(req *seccompNotif) bool {
	at, ok := s.onTheWay[int(req.PID)]
	delete(s.onTheWay, int(req.PID))
	return ok && req.Nr == unix.SYS_EXECVEAT && req.Args[0] == at && req.Args[4] == unix.AT_EMPTY_PATH
}

// divert lets a notified call fail and changes the registers of its thread before the program sees that. The calling goroutine
// has a thread of its own, for the kernel knows a tracer by that.
func (n *notifier) divert(req *seccompNotif, change func(*registers)) error {
	tid := int(req.PID)
	if err := unix.PtraceSeize(tid); err != nil {
		return fmt.Errorf("stop process %d: %w", tid, err)
	}
	err := unix.PtraceInterrupt(tid)
	n.answer(req.ID, unix.EIO)
	if err == nil {
		err = changeStopped(tid, change)
	}
	if err != nil {
		letDie(tid)
		return fmt.Errorf("change the call of process %d: %w", tid, err)
	}
	return nil
}

// changeStopped waits until a thread has stopped, which is at once, and lets it go on with other registers.
func changeStopped(tid int, change func(*registers)) error {
	sig, err := awaitStop(tid)
	if err != nil {
		return err
	}
	var r registers
	if err := r.get(tid); err != nil {
		return err
	}
	change(&r)
	if err := r.set(tid); err != nil {
		return err
	}
	return detach(tid, sig)
}

// awaitStop returns the signal that the thread is to be given when it goes on. The error is ESRCH when it died instead, and
// ECHILD when that was told before.
func awaitStop(tid int) (sig int, err error) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(tid, &ws, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case !ws.Stopped():
			return 0, unix.ESRCH
		case uint32(ws)>>16 == unix.PTRACE_EVENT_STOP:
			return 0, nil
		default:
			return int(ws.StopSignal()), nil
		}
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

func detach(tid, sig int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(sig), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ioctlValue is an ioctl that returns a number.
func ioctlValue(fd uintptr, req uint, arg unsafe.Pointer) (int, error) {
	for {
		v, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uintptr(req), uintptr(arg))
		switch errno {
		case 0:
			return int(v), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
