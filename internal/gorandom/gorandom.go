// Package gorandom makes what a Go program draws the same in each run, by code that is put into the memory of one process.
//
// Go seeds a generator for each thread, and draws (math/rand, names of temporary files, the order of maps) from that of the thread which a
// goroutine happens to run on, so that no seed makes two runs alike. These draws go through runtime.rand. A Patch is other code for that function: it
// draws from a sequence of the main goroutine, and from one for all goroutines that began with the same function (and some others, where there is
// little room). How far each has come is kept behind the program's variables, in what is left of their last page.
//
// The function is known by its bytes, and a goroutine by where Go's versions keep its number and its first function. Where something is not
// as expected, before Go 1.22, without optimizations or with musl's dynamic linker, there is no Patch. A profile may put samples of draws in
// another place. Not goals: what goroutines that run side by side and began alike draw in an order of their own, which ready case a select takes,
// crypto/rand, which asks the kernel, and other processors than x86-64.
package gorandom

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/bits"
	"path"
	"strings"
)

// ErrUnknown is returned of a program whose code is not as expected.
var ErrUnknown = errors.New("gorandom: the program's runtime is not as expected")

// A Patch is what is written into a process before its first instruction. Addresses are those of the file.
type Patch struct {
	Code   []byte
	At     uint64 // where Code goes
	Seeds  uint64 // where random bytes go, Length of them
	Length int
	Entry  uint64 // of the program
}

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

const page = 4096

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
	minor, at, locks, searched := "", uint64(0), uint32(0), false
	for i := range segments {
		s := &segments[i]
		load := elf.ProgType(s.Type) == elf.PT_LOAD
		switch {
		case elf.ProgType(s.Type) == elf.PT_INTERP && !glibc(program, s): // musl's dynamic linker gives the rest of that page to malloc
			return nil, ErrUnknown
		case load && elf.ProgFlag(s.Flags)&elf.PF_X != 0 && !searched:
			searched = true
			search(program, s, searchedCode, func(from uint64, part []byte) bool {
				i := find(part)
				if i >= 0 {
					at, locks = s.Vaddr+from+uint64(i), binary.LittleEndian.Uint32(part[i+locksAt:])
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
	seeds, length := spare(segments)
	if !ok || at == 0 || length == 0 {
		return nil, ErrUnknown
	}
	p := &Patch{At: at, Seeds: seeds, Length: length, Entry: head.Entry}
	p.Code = draw(p.At, p.Seeds, length/8, layout.number, layout.first, locks)
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

// glibc reports whether a program is loaded by the dynamic linker of the GNU C library.
func glibc(program io.ReaderAt, interp *elf.Prog64) bool {
	b := make([]byte, min(interp.Filesz, page))
	n, _ := program.ReadAt(b, int64(interp.Off))
	name, _, _ := strings.Cut(string(b[:max(n, 0)]), "\x00")
	return strings.HasPrefix(path.Base(name), "ld-linux")
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

// spare is the rest of the last page of the program's variables, from a multiple of eight on: a power of two words, at least four, and two;
// none where that is too small.
func spare(segments []elf.Prog64) (at uint64, length int) {
	var end, last uint64
	for _, s := range segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD {
			last = max(last, s.Vaddr+s.Memsz)
			if elf.ProgFlag(s.Flags)&elf.PF_W != 0 {
				end = max(end, s.Vaddr+s.Memsz)
			}
		}
	}
	at = (end + 7) &^ 7
	words := int(-at % page / 8)
	if last > end || words < 6 { // something else may stand in that page
		return 0, 0
	}
	return at, 8 * (2 + 1<<(bits.Len(uint(words-2))-1))
}

// draw is the code that stands at at: an add to a word of its own, of words in all, and SplitMix64's steps from there. It changes registers
// alone that a function of Go may. The main goroutine, number 1, has the second word. The first is for what runs on a thread's own stack, with number
// 0, and for the runtime itself, whose thread holds a lock: it seeds a thread that it starts, on the stack of whoever makes it start one.
func draw(at, seeds uint64, words int, number, first, locks uint32) []byte {
	var c []byte
	put := func(b ...byte) { c = append(c, b...) }
	put32 := func(v uint32) { c = binary.LittleEndian.AppendUint32(c, v) }
	shiftXor := func(n byte) {
		put(0x48, 0x89, 0xc1)    // mov rcx, rax
		put(0x48, 0xc1, 0xe9, n) // shr rcx, n
		put(0x48, 0x31, 0xc8)    // xor rax, rcx
	}
	put(0x31, 0xc9)             //     xor ecx, ecx
	put(0x49, 0x8b, 0x46, 0x30) //     mov rax, [r14+48]: r14 is the goroutine, there is its thread
	put(0x39, 0x88)             //     cmp [rax+locks], ecx
	put32(locks)
	put(0x49, 0x0f, 0x44, 0x8e) //     cmovz rcx, [r14+number]
	put32(number)
	put(0x48, 0x83, 0xe9, 0x02) //     sub rcx, 2
	put(0x72, 0x0e)             //     jb over
	put(0x41, 0x69, 0x8e)       //     imul ecx, [r14+first], …
	put32(first)
	put32(0x9e3779b1)
	put(0xc1, 0xe9, byte(33-bits.Len(uint(words-2)))) // shr ecx, to the words but two
	put(0x48, 0x8d, 0x35)                             // over: lea rsi, [seeds+16]
	put32(uint32(seeds + 16 - (at + uint64(len(c)) + 4)))
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
