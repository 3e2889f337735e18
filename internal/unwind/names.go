package unwind

import (
	"debug/elf"
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
	"sort"
	"strings"
)

// Names are those of the functions of a program of Go, which its runtime keeps for its traces (the table of Go 1.20 and newer). They are the same
// in the next build, whose addresses are others.
type Names struct {
	table                         int64  // in the file
	text                          uint64 // the same of the first function
	count, names, functions, size uint64
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
	n.count, n.names, n.functions = field(0), field(3), field(7)
	if n.count > maxFunctions || n.names > n.size || n.functions > n.size || n.find(program, entry) != first {
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
	h := fnv.New64a()
	_, _ = io.WriteString(h, n.find(program, offset-n.text))
	bound(n.known)[offset] = h.Sum64()
	return n.known[offset]
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
