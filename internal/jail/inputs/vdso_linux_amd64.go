package inputs

import (
	"encoding/binary"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/internal/vdso"
)

// What is done to the kernel's code for the time in a program: it asks the kernel instead, and again when a signal came before the recorder
// had taken the call (EINTR), for no program expects that of a clock. They are nil where that code is not understood.
var (
	// askingWall is for programs that read the monotonic clock all the time: they still read that by themselves.
	askingWall = sync.OnceValue(func() *vdso.Patch { return patchWall(asking(unix.SYS_CLOCK_GETTIME)) })
	// askingGo is that for a program of Go. The frame pointer of who calls goes with the call, as an argument that it does not have: the stack is
	// another one than its goroutine's.
	askingGo = sync.OnceValue(func() *vdso.Patch {
		return patchWall(slices.Concat([]byte{0x48, 0x89, 0xea}, asking(unix.SYS_CLOCK_GETTIME))) // mov rdx, rbp
	})
	askingAll = sync.OnceValue(func() *vdso.Patch {
		return patchOf(func(_, _ uint64) []byte { return slices.Concat(endbr, asking(unix.SYS_CLOCK_GETTIME)) })
	})
)

// patchWall has code ask for the wall time.
func patchWall(ask []byte) *vdso.Patch {
	return patchOf(func(was, at uint64) []byte {
		code := slices.Concat(endbr, []byte{
			0x85, 0xff, // test edi, edi: CLOCK_REALTIME
			0x74, 0x14, // je call
			0x83, 0xff, 0x02, // cmp edi, CLOCK_PROCESS_CPUTIME_ID
			0x74, 0x0f, // je call
			0x83, 0xff, 0x05, // cmp edi, CLOCK_REALTIME_COARSE
			0x74, 0x0a, // je call
			0x83, 0xff, 0x0b, // cmp edi, CLOCK_TAI
			0x74, 0x05, // je call
			0xe9}) // jmp was
		code = binary.LittleEndian.AppendUint32(code, uint32(was-(at+uint64(len(code))+4)))
		return append(code, ask...)
	})
}

// Hides reports whether programs can be made to ask for the time.
func Hides() bool { return askingWall() != nil }

var endbr = []byte{0xf3, 0x0f, 0x1e, 0xfa}

// asking makes a call until no signal has interrupted it.
func asking(nr byte) []byte {
	return []byte{
		0xb8, nr, 0x00, 0x00, 0x00, // mov eax, nr
		0x0f, 0x05, //                 syscall
		0x83, 0xf8, 0xfc, //           cmp eax, -EINTR
		0x74, 0xf4, //                 je  to the first
		0xc3, //                       ret
	}
}

// patchOf has the code of clockGettime in the place of the function of that name, which stands at was, at at.
func patchOf(clockGettime func(was, at uint64) []byte) *vdso.Patch {
	image, err := vdso.Image()
	if err != nil {
		return nil
	}
	p, err := vdso.New(image, func(name string, was, at uint64) []byte {
		switch name {
		case "clock_gettime":
			return clockGettime(was, at)
		case "gettimeofday":
			return slices.Concat(endbr, asking(unix.SYS_GETTIMEOFDAY))
		case "time":
			return slices.Concat(endbr, asking(unix.SYS_TIME))
		case "getrandom":
			return slices.Concat(endbr, []byte{0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, 0xc3}) // mov rax, -ENOSYS; ret
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return p
}
