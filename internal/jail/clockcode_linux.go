package jail

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The kernel puts code into each program that tells the time without a call, the vDSO. Other code takes the place of its functions:
// they make the call, and make it again when a signal came before the recorder had taken it (EINTR), for no program expects that of
// a clock. Where that cannot be, the vDSO is hidden: programs make calls of their own then.

// A clockPatch is code for a place in the vDSO, counted from its start.
type clockPatch struct {
	at   uint64
	code []byte
}

// clockPatches are those of the vDSO that every program has, the recorder too. There are none where a function is unknown.
var clockPatches = sync.OnceValue(func() []clockPatch {
	var out []clockPatch
	seen := make(map[uint64]bool)
	for _, s := range ownVDSO() {
		code, known := clockCode[strings.TrimPrefix(s.Name, "__vdso_")]
		switch {
		case elf.ST_TYPE(s.Info) != elf.STT_FUNC || seen[s.Value]:
			continue
		case !known || s.Value%8 != 0 || s.Size < uint64(len(code)):
			return nil
		case len(code) > 0:
			out = append(out, clockPatch{s.Value, code})
		}
		seen[s.Value] = true
	}
	return out
})

// ownVDSO lists the functions of the recorder's own.
func ownVDSO() []elf.Symbol {
	at := ownAuxiliary(atSysinfoEhdr)
	if at == 0 {
		return nil
	}
	const most = 16 // pages
	var image []byte
	for page := make([]byte, pageSize); len(image) < most*pageSize; at += pageSize {
		if readMemory(os.Getpid(), at, page) != nil {
			break
		}
		image = append(image, page...)
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil
	}
	return symbols
}

func ownAuxiliary(kind uint64) uint64 {
	b, _ := os.ReadFile("/proc/self/auxv")
	for ; len(b) >= 16; b = b[16:] {
		if binary.NativeEndian.Uint64(b) == kind {
			return binary.NativeEndian.Uint64(b[8:])
		}
	}
	return 0
}

// patchClocks changes the functions of the vDSO of a process that stands still; false where that cannot be.
func patchClocks(pid int, base uint64) bool {
	patches := clockPatches()
	for _, p := range patches {
		if n, err := unix.PtracePokeText(pid, uintptr(base+p.at), p.code); err != nil || n < len(p.code) {
			return false
		}
	}
	return len(patches) > 0
}
