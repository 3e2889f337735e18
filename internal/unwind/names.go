package unwind

import (
	"bufio"
	"debug/elf"
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
)

// Names are those of the functions of a program of Go, which its runtime keeps for its traces (the table of Go 1.20 and newer). They are the same
// in the next build, whose addresses are others.
type Names struct {
	Entry uint64 // where the program's first instruction is in the file

	table                         int64  // in the file
	text                          uint64 // the same of the first function
	count, names, functions, size uint64
	named                         uint64            // where names end
	known                         map[uint64]uint64 // digests
}

// Bounds of what is read of a table.
const (
	maxFunctions = 1 << 22
	maxName      = 512
)

// first is where a program begins that Go's own linker has made. Another one puts code of its own before the functions, and nothing tells how much.
const first = "_rt0_amd64_linux"

// NewNames finds the table of a program; nil where there is none that is understood.
func NewNames(program io.ReaderAt) *Names {
	f, err := elf.NewFile(program)
	if err != nil {
		return nil
	}
	n := &Names{known: make(map[uint64]uint64)}
	var entry uint64
	for _, s := range f.Sections {
		switch {
		case s.Name == ".text":
			n.text, entry = s.Offset, f.Entry-s.Addr
		case strings.HasSuffix(s.Name, ".gopclntab"):
			n.table, n.size = int64(s.Offset), s.Size
		}
	}
	const magic, word = 0xfffffff1, 8
	var head [8 + 8*word]byte
	if _, err := program.ReadAt(head[:], n.table); n.table == 0 || err != nil || binary.LittleEndian.Uint32(head[:]) != magic || head[7] != word {
		return nil
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(head[8+i*word:]) }
	n.Entry = n.text + entry
	n.count, n.names, n.named, n.functions = field(0), field(3), field(4), field(7)
	if n.count > maxFunctions || n.names > n.named || n.named > n.size || n.functions > n.size || n.find(program, entry) != first {
		return nil
	}
	return n
}

// Digest is that of the name of the function which an instruction is of, by its offset in the file. open opens the program where it has to be looked
// up; 0 where that fails.
func (n *Names) Digest(offset uint64, open func() (*os.File, error)) uint64 {
	d, ok := n.known[offset]
	if ok {
		return d
	}
	program, err := open()
	if err != nil {
		return 0
	}
	defer program.Close()
	bound(n.known)[offset] = NameDigest(n.find(program, offset-n.text))
	return n.known[offset]
}

// NameDigest is Digest of an instruction of the function of that name.
func NameDigest(name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return h.Sum64()
}

// find is the name of the function that an instruction is of, by its distance from the first one; "" for none.
func (n *Names) find(program io.ReaderAt, pc uint64) string {
	number := func(at uint64) uint64 { // one of four bytes
		var b [4]byte
		_, _ = program.ReadAt(b[:], n.table+int64(at)) // 0 where there is nothing
		return uint64(binary.LittleEndian.Uint32(b[:]))
	}
	entry := func(i int) uint64 { return n.functions + 8*uint64(i) }
	i := sort.Search(int(n.count), func(i int) bool { return number(entry(i)) > pc }) - 1
	if i < 0 {
		return ""
	}
	function := n.functions + number(entry(i)+4)
	var b [maxName]byte
	k, _ := program.ReadAt(b[:], n.table+int64(n.names+number(function+4))) // what is short ends with the file
	name, _, _ := strings.Cut(string(b[:k]), "\x00")
	return name
}

// A Function is where the code of one stands in the file.
type Function struct{ From, To uint64 }

// Functions finds functions by their names, of which it lacks those that are not in the program. It reads the table from its first name to its last
// function, and keeps nothing of that.
func (n *Names) Functions(program io.ReaderAt, names ...string) map[string]Function {
	part := func(from, to uint64) *bufio.Reader {
		return bufio.NewReaderSize(io.NewSectionReader(program, n.table+int64(from), int64(to-from)), 64<<10)
	}
	wanted := make(map[uint32]string, len(names)) // by where the name stands
	texts := part(n.names, n.named)
	for at := 0; len(wanted) < len(names); {
		text, err := texts.ReadSlice(0)
		if err != nil {
			break // of a name that is longer than any too
		}
		if i := slices.Index(names, string(text[:len(text)-1])); i >= 0 {
			wanted[uint32(at)] = names[i]
		}
		at += len(text)
	}
	found := make(map[string]Function, len(names))
	entries, functions, at := part(n.functions, n.size), part(n.functions, n.size), uint32(0)
	for range n.count {
		var entry [8 + 4]byte // and where the next one begins
		is, err := entries.Peek(len(entry))
		if err != nil {
			break
		}
		copy(entry[:], is)
		_, _ = entries.Discard(8) // which were there just now
		function := binary.LittleEndian.Uint32(entry[4:])
		if function < at {
			break // no linker's order
		}
		if _, err := functions.Discard(int(function - at)); err != nil {
			break
		}
		at = function
		head, err := functions.Peek(8)
		if err != nil {
			break
		}
		if name, ok := wanted[binary.LittleEndian.Uint32(head[4:])]; ok {
			found[name] = Function{n.text + uint64(binary.LittleEndian.Uint32(entry[:])), n.text + uint64(binary.LittleEndian.Uint32(entry[8:]))}
		}
	}
	return found
}
