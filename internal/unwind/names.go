package unwind

import (
	"debug/elf"
	"encoding/binary"
	"io"
	"sort"
	"strings"
)

// Names are those of the functions of a program of Go, which its runtime keeps for its traces (the table of Go 1.20 and newer). They are the same
// in the next build, whose addresses are others.
type Names struct {
	file                          io.ReaderAt
	table, text                   int64 // in the file
	count, names, functions, size uint64
	known                         map[uint64]string
}

// Bounds of what is read of a table.
const (
	maxFunctions = 1 << 22
	maxName      = 512
)

// NewNames finds the table of a program; nil where there is none that is understood.
func NewNames(file io.ReaderAt) *Names {
	f, err := elf.NewFile(file)
	if err != nil {
		return nil
	}
	n := &Names{file: file, known: make(map[uint64]string)}
	for _, s := range f.Sections {
		switch {
		case s.Name == ".text":
			n.text = int64(s.Offset)
		case strings.HasSuffix(s.Name, ".gopclntab"):
			n.table, n.size = int64(s.Offset), s.Size
		}
	}
	const magic, word = 0xfffffff1, 8
	var head [8 + 8*word]byte
	if _, err := file.ReadAt(head[:], n.table); n.table == 0 || n.text == 0 || err != nil || binary.LittleEndian.Uint32(head[:]) != magic || head[7] != word {
		return nil
	}
	field := func(i int) uint64 { return binary.LittleEndian.Uint64(head[8+i*word:]) }
	n.count, n.names, n.functions = field(0), field(3), field(7)
	if n.count > maxFunctions || n.names > n.size || n.functions > n.size {
		return nil
	}
	return n
}

// At is the name of the function that an instruction is of, by its offset in the file; "" for none.
func (n *Names) At(offset uint64) string {
	if name, ok := n.known[offset]; ok {
		return name
	}
	name := n.find(offset - uint64(n.text))
	bound(n.known)[offset] = name
	return name
}

func (n *Names) find(pc uint64) string {
	entry := func(i int) uint64 { return n.number(n.functions + 8*uint64(i)) }
	i := sort.Search(int(n.count), func(i int) bool { return entry(i) > pc }) - 1
	if i < 0 {
		return ""
	}
	function := n.functions + n.number(n.functions+8*uint64(i)+4)
	var b [maxName]byte
	k, _ := n.file.ReadAt(b[:], n.table+int64(n.names+n.number(function+4))) // what is short ends with the file
	name, _, _ := strings.Cut(string(b[:k]), "\x00")
	return name
}

// number reads one of four bytes.
func (n *Names) number(at uint64) uint64 {
	var b [4]byte
	_, _ = n.file.ReadAt(b[:], n.table+int64(at)) // 0 where there is nothing
	return uint64(binary.LittleEndian.Uint32(b[:]))
}
