package jail

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/vdso"
)

// askingWall is what is done to the kernel's code for the time in programs that read the monotonic clock all the time: it asks the kernel
// for the wall time, and still reads that clock by itself. It is nil where that code is not understood.
var askingWall = sync.OnceValue(func() *vdso.Patch {
	image, err := vdso.Image()
	if err != nil {
		return nil
	}
	p, err := vdso.New(image, stubOf)
	if err != nil {
		return nil
	}
	return p
})

// stubOf is the code in the place of a function at was, which stands at at; nil for one that stays.
func stubOf(name string, was, at uint64) []byte {
	endbr := []byte{0xf3, 0x0f, 0x1e, 0xfa}
	call := func(nr uint32) []byte { // mov eax, nr; syscall; ret
		return append(binary.LittleEndian.AppendUint32([]byte{0xb8}, nr), 0x0f, 0x05, 0xc3)
	}
	switch name {
	case "clock_gettime":
		code := slices.Concat(endbr, []byte{
			0x85, 0xff, // test edi, edi: CLOCK_REALTIME
			0x74, 0x0a, // je call
			0x83, 0xff, 0x05, // cmp edi, CLOCK_REALTIME_COARSE
			0x74, 0x05, // je call
			0xe9}) // jmp was
		code = binary.LittleEndian.AppendUint32(code, uint32(was-(at+uint64(len(code))+4)))
		return append(code, call(228)...)
	case "gettimeofday":
		return append(endbr, call(96)...)
	case "time":
		return append(endbr, call(201)...)
	case "getrandom":
		return append(endbr, 0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, 0xc3) // mov rax, -ENOSYS; ret
	}
	return nil
}
