package inputs

import (
	"encoding/binary"
	"math"
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
	askingAll  = sync.OnceValue(func() *vdso.Patch {
		return patchOf(func(_, _ uint64) []byte { return slices.Concat(endbr, asking(unix.SYS_CLOCK_GETTIME)) })
	})
)

// patchWall has code ask for the wall time.
func patchWall(ask []byte) *vdso.Patch {
	return patchOf(func(was, at uint64) []byte { return wallOnly(endbr, was, at, ask) })
}

// wallOnly goes on with code that asks for the wall time, and leaves what else there is to the kernel's.
func wallOnly(code []byte, was, at uint64, ask []byte) []byte {
	code = slices.Concat(code, []byte{
		0x85, 0xff, // test edi, edi: CLOCK_REALTIME
		0x74, 0x14, // je call
		0x83, 0xff, 0x02, // cmp edi, CLOCK_PROCESS_CPUTIME_ID
		0x74, 0x0f, // je call
		0x83, 0xff, 0x05, // cmp edi, CLOCK_REALTIME_COARSE
		0x74, 0x0a, // je call
		0x83, 0xff, 0x0b, // cmp edi, CLOCK_TAI
		0x74, 0x05, // je call
	})
	return append(jumpTo(code, was, at), ask...)
}

// jumpTo goes on with code, which stands at at, at was.
func jumpTo(code []byte, was, at uint64) []byte {
	code = append(code, 0xe9)
	return binary.LittleEndian.AppendUint32(code, uint32(was-(at+uint64(len(code))+4)))
}

// askingGo is askingWall for a program of Go. The frame pointer of who calls goes with the call, as an argument that it does not have: the stack is
// another one than its goroutine's.
//
// What its package time makes of the monotonic clock is made of the wall time, and so is given again with it: that is less by a number of
// seconds, which has it tell about what the kernel's clock would. c, which may be nil, says where that is read, and moved how much
// further on the program stands than in its file.
func askingGo(c *goClock, moved uint64, less int32) *vdso.Patch {
	ask := slices.Concat([]byte{0x48, 0x89, 0xea}, asking(unix.SYS_CLOCK_GETTIME)) // mov rdx, rbp
	if c == nil {
		return patchWall(ask)
	}
	return patchOf(func(was, at uint64) []byte {
		near := func(b []byte, site uint64) []byte { return binary.LittleEndian.AppendUint32(b, uint32(site-c.nano)) }
		seconds := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, uint32(less)) }

		var copies []byte // what time.now has read as the wall time
		copies = append(copies,
			0x48, 0x8b, 0x46, 0x10, // mov rax, [rsi+16]
			0x48, 0x8b, 0x56, 0x18, // mov rdx, [rsi+24]
			0x48, 0x2d) // sub rax, less
		copies = append(seconds(copies),
			0x48, 0x89, 0x06, // mov [rsi], rax
			0x48, 0x89, 0x56, 0x08, // mov [rsi+8], rdx
			0xc3) // ret

		elapsed := slices.Concat([]byte{0x31, 0xff}, ask[:len(ask)-1], []byte{0x48, 0x81, 0x2e}) // xor edi, edi; …; sub qword [rsi], less
		elapsed = append(seconds(elapsed), 0xc3)

		who := []byte{
			0x48, 0x8b, 0x55, 0x00, // mov rdx, [rbp]
			0x48, 0x8b, 0x52, 0x08, // mov rdx, [rdx+8]: where who called nanotime1 goes on
			0x48, 0x29, 0xca} // sub rdx, rcx
		for i, site := range c.elapsed {
			const length = 7 + 2                                    // of a comparison
			who = append(near(append(who, 0x48, 0x81, 0xfa), site), // cmp rdx, site-nano
				0x74, byte(length*(len(c.elapsed)-1-i)+5)) // je elapsed, behind a jump
		}

		code := append(slices.Clone(endbr),
			0x83, 0xff, 0x01, // cmp edi, CLOCK_MONOTONIC
			0x75, 0) // jne other
		other := len(code)
		code = append(code,
			0x48, 0x8b, 0x04, 0x24, // mov rax, [rsp]
			0x48, 0xb9) // mov rcx, nano
		code = binary.LittleEndian.AppendUint64(code, c.nano+moved)
		code = append(code,
			0x48, 0x29, 0xc8, // sub rax, rcx
			0x74, byte(6+2+len(copies)), // je who
			0x48, 0x3d) // cmp rax, now-nano
		code = append(near(code, c.now), 0x75, byte(len(copies)+len(who))) // jne to the jump
		code = append(jumpTo(slices.Concat(code, copies, who), was, at), elapsed...)
		if code[other-1] = byte(len(code) - other); len(code)-other > math.MaxInt8 {
			return nil // farther than such a jump goes
		}
		return wallOnly(code, was, at, ask)
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
