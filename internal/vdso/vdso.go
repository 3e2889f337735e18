// Package vdso changes the kernel's code that tells the time without a call (vDSO) in the memory of one process.
//
// The image is an ELF object that the kernel maps into every process. A Patch puts code behind it, where nothing stands, and has symbols name
// that code. Where an image is not as expected there is no Patch. The package knows x86-64's layout of symbols, and nothing of what the
// code does.
package vdso

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
)

// ErrUnknown is returned where there is no image, or one that cannot be changed.
var ErrUnknown = errors.New("vdso: the kernel's code for the time is not as expected")

// Image reads our own: that of every process of this kernel.
func Image() ([]byte, error) {
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
	return nil, ErrUnknown
}

// A Patch is what is written into an image.
type Patch struct {
	symbols, code []byte
	atSymbols     uint64 // from the image's beginning
	atCode        uint64
}

const (
	symbolSize  = 24 // bytes of an Elf64_Sym
	symbolValue = 8  // where its value stands
	spare       = 256
)

// New makes a Patch of image. stub returns the code in the place of a function, by its name without "__vdso_"; was is where that stands, and
// at where the code will, both from the image's beginning. It returns nil for a function that stays. The code may have 256 bytes in all.
func New(image []byte, stub func(name string, was, at uint64) []byte) (*Patch, error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	table := file.Section(".dynsym")
	symbols, err := file.DynamicSymbols()
	free := len(image) - spare
	if err != nil || table == nil || len(bytes.TrimRight(image, "\x00")) > free || table.Offset+table.Size > uint64(free) {
		return nil, ErrUnknown
	}
	p := &Patch{symbols: bytes.Clone(image[table.Offset : table.Offset+table.Size]), atSymbols: table.Offset, atCode: uint64(free)}
	at := make(map[string]uint64)
	for i, s := range symbols {
		name := strings.TrimPrefix(s.Name, "__vdso_")
		if at[name] == 0 {
			code := stub(name, s.Value, p.atCode+uint64(len(p.code)))
			if code == nil {
				continue
			}
			at[name] = p.atCode + uint64(len(p.code))
			p.code = append(p.code, code...)
		}
		binary.LittleEndian.PutUint64(p.symbols[symbolSize*(i+1)+symbolValue:], at[name])
	}
	if at["clock_gettime"] == 0 || len(p.code) > spare {
		return nil, ErrUnknown
	}
	return p, nil
}

// Put writes the patch into the image at base of a process that stands still, whose memory mem is. The image is then a copy of that
// process's own.
func (p *Patch) Put(mem io.WriterAt, base uint64) error {
	_, err1 := mem.WriteAt(p.code, int64(base+p.atCode))
	_, err2 := mem.WriteAt(p.symbols, int64(base+p.atSymbols))
	return errors.Join(err1, err2)
}
