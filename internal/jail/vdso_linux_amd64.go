package jail

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
)

// A vdsoPatch makes of the kernel's code that tells the time without a call (vDSO) one that asks the kernel for the wall time, and still
// reads the monotonic clock by itself: for programs that read that all the time.
type vdsoPatch struct {
	symbols, code []byte // what stands in the image
	atSymbols     uint64 // from its beginning
	atCode        uint64
}

// vdso is the patch for this kernel, nil where its image is not understood: it is the same one in every process.
var vdso = sync.OnceValue(func() *vdsoPatch {
	image, err := vdsoImage()
	if err != nil {
		return nil
	}
	p, err := patchOf(image)
	if err != nil {
		return nil
	}
	return p
})

// vdsoImage reads our own.
func vdsoImage() ([]byte, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		from, rest, _ := strings.Cut(line, "-")
		to, _, _ := strings.Cut(rest, " ")
		first, err1 := strconv.ParseUint(from, 16, 64)
		last, err2 := strconv.ParseUint(to, 16, 64)
		mem, err3 := os.Open("/proc/self/mem")
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		defer mem.Close()
		image := make([]byte, last-first)
		_, err = mem.ReadAt(image, int64(first))
		return image, err
	}
	return nil, errNoVDSO
}

var errNoVDSO = errors.New("the kernel's code for the time is not as expected")

const (
	symbolSize  = 24 // bytes of an Elf64_Sym
	symbolValue = 8  // where its value stands
	vdsoSpare   = 128
)

// patchOf puts stubs behind the image, where nothing stands, and has its symbols name them.
func patchOf(image []byte) (*vdsoPatch, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	table := file.Section(".dynsym")
	symbols, err := file.DynamicSymbols()
	free := len(image) - vdsoSpare
	if err != nil || table == nil || len(bytes.TrimRight(image, "\x00")) > free || int(table.Offset+table.Size) > free {
		return nil, errNoVDSO
	}
	p := &vdsoPatch{symbols: bytes.Clone(image[table.Offset : table.Offset+table.Size]), atSymbols: table.Offset, atCode: uint64(free)}
	stubs := make(map[string]uint64)
	for i, s := range symbols {
		name := strings.TrimPrefix(s.Name, "__vdso_")
		code := stubOf(name, s.Value, p.atCode+uint64(len(p.code)))
		if code == nil {
			continue
		}
		if stubs[name] == 0 {
			stubs[name] = p.atCode + uint64(len(p.code))
			p.code = append(p.code, code...)
		}
		binary.LittleEndian.PutUint64(p.symbols[symbolSize*(i+1)+symbolValue:], stubs[name])
	}
	if stubs["clock_gettime"] == 0 || len(p.code) > vdsoSpare {
		return nil, errNoVDSO
	}
	return p, nil
}

// stubOf is the code in the place of a function at was, which stands at at; nil for one that stays.
func stubOf(name string, was, at uint64) []byte {
	endbr := []byte{0xf3, 0x0f, 0x1e, 0xfa}
	call := func(nr uint32) []byte { // mov eax, nr; syscall; ret
		return append(binary.LittleEndian.AppendUint32([]byte{0xb8}, nr), 0x0f, 0x05, 0xc3)
	}
	switch name {
	case "clock_gettime":
		code := append(endbr,
			0x85, 0xff, // test edi, edi: CLOCK_REALTIME
			0x74, 0x0a, // je call
			0x83, 0xff, 0x05, // cmp edi, CLOCK_REALTIME_COARSE
			0x74, 0x05, // je call
			0xe9) // jmp was
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

// put writes the patch into the image at base of a process that stands still. The image is then a copy of that process's own.
func (p *vdsoPatch) put(mem *os.File, base uint64) error {
	_, err1 := mem.WriteAt(p.code, int64(base+p.atCode))
	_, err2 := mem.WriteAt(p.symbols, int64(base+p.atSymbols))
	return errors.Join(err1, err2)
}
