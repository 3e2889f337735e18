// Package gorandom makes what a Go program draws the same in each run, by code that is put into the memory of one process.
//
// Go seeds a generator for each thread, and draws (math/rand, names of temporary files, the order of maps) from that of the thread which a
// goroutine happens to run on, so that no seed makes two runs alike. All draws go through runtime.rand. A Patch is other code for that function: it
// draws from a sequence of the main goroutine, and from one for all goroutines that began with the same function. How far each has come is kept
// behind the program's variables, in what is left of their last page.
//
// The function is known by its bytes, and a goroutine by where Go's versions keep its number and its first function. Where something is not
// as expected, before Go 1.22 or without optimizations, there is no Patch. Not goals: what is drawn in an order of its own by goroutines
// that run side by side and began alike, crypto/rand, which asks the kernel, and other processors than x86-64.
package gorandom

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/bits"
	"strings"
)

// ErrUnknown is returned of a program whose code is not as expected.
var ErrUnknown = errors.New("gorandom: the program's runtime is not as expected")

// A Patch is what is written into a process before its first instruction. Addresses are those of the file.
type Patch struct {
	Code   []byte
	At     uint64 // where Code goes
	Seeds  uint64 // where random bytes go, SeedBytes of them
	Length int    // of these, in bytes
	Entry  uint64 // of the program
}

// layouts tell, by the minor number of a Go version, where a goroutine keeps its number and the address of its first function.
var layouts = map[string]struct{ number, first uint32 }{
	"22": {152, 296}, "23": {160, 304}, "24": {160, 304}, "25": {152, 296}, "26": {152, 304},
}

// function is runtime.rand, with "??" for what differs between programs.
const function = "55 4889e5 4883ec18 498b4630 4889442408 8400 488d88???????? 48894c2410 90 eb1e ff80???????? 4889c8 e8???????? 488b442408 " +
	"ff88???????? 488b4c2410 8b90???????? 90 3990???????? 76d3 8d4a01 8988???????? 83e21f 488b84d0???????? 4883c418 5d c3"

// searched is how much of a program's code is looked through, in bytes: the runtime comes first.
const searched = 16 << 20

// longest is how much of a file is read at all, in bytes: who wrote it may want a reader's memory.
const longest = 256 << 20

const page = 4096

// New finds in a program, an ELF file, what is to be written.
func New(file io.ReaderAt) (*Patch, error) {
	program := io.NewSectionReader(file, 0, longest)
	f, err := elf.NewFile(program)
	if err != nil {
		return nil, err
	}
	text := f.Section(".text")
	if f.Machine != elf.EM_X86_64 || text == nil || text.Type != elf.SHT_PROGBITS {
		return nil, ErrUnknown
	}
	info, err := buildinfo.Read(program)
	if err != nil {
		return nil, err
	}
	_, minor, _ := strings.Cut(info.GoVersion, ".")
	minor, _, _ = strings.Cut(minor, ".")
	layout, ok := layouts[minor]
	if !ok || !strings.HasPrefix(info.GoVersion, "go1.") {
		return nil, ErrUnknown
	}
	code := make([]byte, min(text.Size, searched))
	if _, err := text.ReadAt(code, 0); err != nil {
		return nil, err
	}
	at := find(code)
	seeds, length := spare(f)
	if at < 0 || length == 0 {
		return nil, ErrUnknown
	}
	p := &Patch{At: text.Addr + uint64(at), Seeds: seeds, Length: length, Entry: f.Entry}
	p.Code = draw(p.At, p.Seeds, length/8, layout.number, layout.first)
	return p, nil
}

// find returns where runtime.rand stands in code; -1 for nowhere, or for more than one place.
func find(code []byte) int {
	text := strings.ReplaceAll(function, " ", "")
	begin, _, _ := strings.Cut(text, "?")
	first, _ := hex.DecodeString(begin)
	found := -1
	for from := 0; ; {
		i := bytes.Index(code[from:], first)
		if i < 0 {
			return found
		}
		from += i
		if is(code[from:], text) {
			if found >= 0 {
				return -1
			}
			found = from
		}
		from++
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

// spare is the rest of the last page of the program's variables, from a multiple of eight on: a power of two words, at least two,
// and one; none where that is too small.
func spare(f *elf.File) (at uint64, length int) {
	var end uint64
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W != 0 {
			end = max(end, p.Vaddr+p.Memsz)
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Vaddr+p.Memsz > end { // something else may stand in that page
			return 0, 0
		}
	}
	at = (end + 7) &^ 7
	words := int(-at % page / 8)
	if words < 3 {
		return 0, 0
	}
	return at, 8 * (1 + 1<<(bits.Len(uint(words-1))-1))
}

// draw is the code that stands at at: an add to a word of its own, of words in all, and SplitMix64's steps from there. It changes registers
// alone that a function of Go may.
func draw(at, seeds uint64, words int, number, first uint32) []byte {
	var c []byte
	put := func(b ...byte) { c = append(c, b...) }
	put32 := func(v uint32) { c = binary.LittleEndian.AppendUint32(c, v) }
	shiftXor := func(n byte) {
		put(0x48, 0x89, 0xc1)    // mov rcx, rax
		put(0x48, 0xc1, 0xe9, n) // shr rcx, n
		put(0x48, 0x31, 0xc8)    // xor rax, rcx
	}
	put(0x49, 0x8b, 0x8e) //           mov rcx, [r14+first]: r14 is the goroutine
	put32(first)
	put(0x69, 0xc9) //                 imul ecx, ecx, …
	put32(0x9e3779b1)
	put(0xc1, 0xe9, byte(33-bits.Len(uint(words-1)))) // shr ecx, to the words but one
	put(0xff, 0xc1)                                   // inc ecx
	put(0x49, 0x83, 0xbe)                             // cmp qword [r14+number], 1: the main goroutine
	put32(number)
	put(1)
	put(0x75, 0x02)       //           jne over
	put(0x31, 0xc9)       //           xor ecx, ecx
	put(0x48, 0x8d, 0x35) //           lea rsi, [seeds]
	put32(uint32(seeds - (at + uint64(len(c)) + 4)))
	put(0x48, 0xba) //                 mov rdx, …
	c = binary.LittleEndian.AppendUint64(c, 0xbf58476d1ce4e5b9)
	put(0x48, 0x89, 0xd0)                   // mov rax, rdx
	put(0xf0, 0x48, 0x0f, 0xc1, 0x04, 0xce) // lock xadd [rsi+rcx*8], rax
	shiftXor(30)
	put(0x48, 0x0f, 0xaf, 0xc2) //     imul rax, rdx
	shiftXor(27)
	put(0x48, 0x0f, 0xaf, 0xc2)
	shiftXor(31)
	put(0xc3)
	return c
}
