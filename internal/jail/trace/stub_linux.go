package trace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"strconv"

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
