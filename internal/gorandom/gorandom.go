// Package gorandom makes what a Go program draws the same in each run, by code that is put into the memory of one process.
//
// Go seeds a generator for each thread, and draws (math/rand, names of temporary files, the order of maps) from that of the thread which a
// goroutine happens to run on, so that no seed makes two runs alike. These draws go through runtime.rand. A Patch is other code for that function: it
// draws from sequences of the main goroutine, and from those of all goroutines that began with the same function (and some others, where there is
// little room), which differ by the place that asks. How far each has come is kept in a page of its own.
//
// The function is known by its bytes, and a goroutine by where Go's versions keep its number and its first function. Where something is not
// as expected, before Go 1.22 or without optimizations, there is no Patch. A profile may put samples of draws in another place. Not goals: what
// goroutines that run side by side and began alike draw in an order of their own, which ready case a select takes, crypto/rand, which asks the
// kernel, and other processors than x86-64.
package gorandom

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

// ErrUnknown is returned of a program whose code is not as expected.
var ErrUnknown = errors.New("gorandom: the program's runtime is not as expected")

// A Patch is for one program. Its addresses are those of the file.
type Patch struct {
	At    uint64 // where Code goes, before the program's first instruction
	Entry uint64 // of the program

	number, first, locks uint32 // where a goroutine and a thread keep what Code looks at
}

// Length is how many random bytes Code draws from.
const Length = 4096

// layouts tell, by the minor number of a Go version, where a goroutine keeps its number and the address of its first function.
var layouts = map[string]struct{ number, first uint32 }{
	"22": {152, 296}, "23": {160, 304}, "24": {160, 304}, "25": {152, 296}, "26": {152, 304},
}

// function is runtime.rand, with "??" for what differs between programs.
const function = "55 4889e5 4883ec18 498b4630 4889442408 8400 488d88???????? 48894c2410 90 eb1e ff80???????? 4889c8 e8???????? 488b442408 " +
	"ff88???????? 488b4c2410 8b90???????? 90 3990???????? 76d3 8d4a01 8988???????? 83e21f 488b84d0???????? 4883c418 5d c3"

const locksAt = 36 // in it, where a thread keeps how many locks it holds

// Bounds of what is read of a file, in bytes: of its code, where the runtime comes first, and of its variables, where the version comes early. It is
// read in parts, of which each has the end of the one before it: whoever searches needs no more memory than that, and reads no further than it has to.
const (
	searchedCode = 16 << 20
	searchedData = 1 << 20
	partly       = 64 << 10
	overlap      = 256 // more than the function has, and the version with its head
	maxSegments  = 64
	maxVersion   = 64
)

// New finds in a program, an ELF file, what is to be written.
func New(program io.ReaderAt) (*Patch, error) {
	var head elf.Header64
	if err := read(program, 0, &head); err != nil {
		return nil, err
	}
	is := string(head.Ident[:elf.EI_VERSION]) == elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)})
	if !is || elf.Machine(head.Machine) != elf.EM_X86_64 || head.Phnum > maxSegments || head.Phentsize != 56 {
		return nil, ErrUnknown
	}
	segments := make([]elf.Prog64, head.Phnum)
	if err := read(program, int64(head.Phoff), segments); err != nil {
		return nil, err
	}
	p, minor, searched := &Patch{Entry: head.Entry}, "", false
	for i := range segments {
		s := &segments[i]
		load := elf.ProgType(s.Type) == elf.PT_LOAD
		switch {
		case load && elf.ProgFlag(s.Flags)&elf.PF_X != 0 && !searched:
			searched = true
			search(program, s, searchedCode, func(from uint64, part []byte) bool {
				i := find(part)
				if i >= 0 {
					p.At, p.locks = s.Vaddr+from+uint64(i), binary.LittleEndian.Uint32(part[i+locksAt:])
				}
				return i >= 0
			})
		case load && elf.ProgFlag(s.Flags)&elf.PF_W != 0 && minor == "":
			search(program, s, searchedData, func(_ uint64, part []byte) bool {
				minor = minorOf(part)
				return minor != ""
			})
		}
	}
	layout, ok := layouts[minor]
	if !ok || p.At == 0 {
		return nil, ErrUnknown
	}
	p.number, p.first = layout.number, layout.first
	return p, nil
}

func read(program io.ReaderAt, at int64, to any) error {
	return binary.Read(io.NewSectionReader(program, at, int64(binary.Size(to))), binary.LittleEndian, to)
}

// search looks through the first so many bytes of a segment's file, until look has found something in one part of it.
func search(program io.ReaderAt, s *elf.Prog64, most uint64, look func(from uint64, part []byte) bool) {
	most = min(s.Filesz, most)
	b := make([]byte, min(most, partly+overlap))
	for from := uint64(0); from < most; from += partly {
		n, _ := program.ReadAt(b[:min(most-from, uint64(len(b)))], int64(s.Off+from))
		if n <= 0 || look(from, b[:n]) {
			return
		}
	}
}

// minorOf is the minor number of the Go version that stands in a program's variables, as Go 1.18 and newer put it there (debug/buildinfo); "" for
// none.
func minorOf(data []byte) string {
	const begin, inline, head = "\xff Go buildinf:", 2, 32
	i := bytes.Index(data, []byte(begin))
	if i < 0 || len(data) < i+head+1+maxVersion || data[i+len(begin)+1]&inline == 0 {
		return ""
	}
	length, text := int(data[i+head]), data[i+head+1:]
	version, ok := strings.CutPrefix(string(text[:min(length, maxVersion)]), "go1.")
	if !ok {
		return ""
	}
	return version[:len(version)-len(strings.TrimLeft(version, "0123456789"))]
}

// find returns where runtime.rand first stands in code; -1 for nowhere.
func find(code []byte) int {
	text := strings.ReplaceAll(function, " ", "")
	begin, _, _ := strings.Cut(text, "?")
	first, _ := hex.DecodeString(begin)
	for from := 0; ; from++ {
		i := bytes.Index(code[from:], first)
		if i < 0 {
			return -1
		}
		from += i
		if is(code[from:], text) {
			return from
		}
	}
}

// is reports whether code begins as a pattern says.
func is(code []byte, pattern string) bool {
	if len(code) < len(pattern)/2 {
		return false
	}
	got := hex.EncodeToString(code[:len(pattern)/2])
	for i := range pattern {
		if pattern[i] != '?' && pattern[i] != got[i] {
			return false
		}
	}
	return true
}

// Code is runtime.rand's with random bytes at seeds: a step of wyrand from one of their words. It changes registers alone that a function of Go may.
//
// The first word is for the runtime itself, whose thread holds a lock: it seeds a thread that it starts, on the stack of whoever makes it start one.
// A quarter after it is for the main goroutine, number 1, by the place that runtime.rand's caller returns to: that seeds an emptied map
// anew says nothing of the next temporary name. A place is known by four bytes of the code there and not by its address, which is another one once
// the program is built with a line more or less. The others are for other goroutines, by that and by their first function.
func (p *Patch) Code(seeds uint64) []byte {
	const (
		odd     = 0x9e3779b1
		quarter = 1 << 7 // of the words; as a byte it is its negative
		shift   = 32 - 7 // of what is 32 bits long, to less than that
	)
	var c []byte
	put := func(b ...byte) { c = append(c, b...) }
	put32 := func(v uint32) { c = binary.LittleEndian.AppendUint32(c, v) }
	put64 := func(v uint64) { c = binary.LittleEndian.AppendUint64(c, v) }
	put(0x31, 0xc9)             //     xor ecx, ecx
	put(0x49, 0x8b, 0x46, 0x30) //     mov rax, [r14+48]: r14 is the goroutine, there is its thread
	put(0x39, 0x88)             //     cmp [rax+locks], ecx
	put32(p.locks)
	put(0x75, 0x2d)             //     jne over
	put(0x48, 0x8b, 0x4d, 0x08) //     mov rcx, [rbp+8]: who calls has a frame
	put(0x69, 0x49, 0x01)       //     imul ecx, [rcx+1], …: where in the frame something lies tells more than the instruction that loads it
	put32(odd)
	put(0xc1, 0xe9, shift) //     shr ecx, shift
	put(0xff, 0xc1)        //     inc ecx
	put(0x41, 0x83, 0xbe)  //     cmp [r14+number], 1
	put32(p.number)
	put(0x01)
	put(0x74, 0x13)       //           je over
	put(0x41, 0x69, 0x86) //           imul eax, [r14+first], …
	put32(p.first)
	put32(odd)
	put(0xc1, 0xe8, shift-1) //        shr eax, shift-1
	put(0x01, 0xc1)          //        add ecx, eax
	put(0x83, 0xe9, quarter) //        sub ecx, -quarter, which takes less room than to add it
	put(0x48, 0xbe)          //                 over: mov rsi, seeds
	put64(seeds)
	put(0x48, 0xb8) //                 mov rax, …
	put64(0xa0761d6478bd642f)
	put(0xf0, 0x48, 0x0f, 0xc1, 0x04, 0xce) // lock xadd [rsi+rcx*8], rax
	put(0x48, 0xba)                         // mov rdx, …
	put64(0xe7037ed1a0b428db)
	put(0x48, 0x31, 0xc2) //           xor rdx, rax
	put(0x48, 0xf7, 0xe2) //           mul rdx
	put(0x48, 0x31, 0xd0) //           xor rax, rdx
	put(0xc3)
	return c
}
