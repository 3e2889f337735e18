package cellfont

import (
	"bytes"
	"compress/flate"
	_ "embed" // the fonts
	"encoding/binary"
	"io"
	"slices"
	"sync"
)

//go:generate go -C ../../tools/cellfont run . -o ../../internal/cellfont

var (
	//go:embed unifont.bin
	unifontPacked []byte
	//go:embed smooth.bin
	smoothPacked []byte
)

// A font is glyphs of one of the packed files, sorted by character.
type font struct {
	keys  []uint32 // the character, times two, and its kind
	place []uint32 // where its data begins
	data  []byte
}

// The kinds of glyph: in Unifont narrow and wide ones, in the smooth font regular and bold ones.
var (
	unifont = sync.OnceValue(func() *font { return unpack(unifontPacked, 16, 32) })
	smooth  = sync.OnceValue(func() *font { return unpack(smoothPacked, smoothSize, smoothSize) })
)

const smoothSize = 2 * Width * 2 * Height / 2 // two pixels a byte

// unpack reads what tools/cellfont wrote; size0 and size1 are the bytes of a glyph of each kind. The files are part of the
// program, so what is wrong with them is a panic.
func unpack(packed []byte, size0, size1 int) *font {
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		panic("cellfont: an embedded font is broken: " + err.Error())
	}
	count, n := binary.Uvarint(raw)
	raw = raw[n:]
	f := &font{keys: make([]uint32, count), place: make([]uint32, count)}
	var char, at uint32
	for i := range f.keys {
		v, n := binary.Uvarint(raw)
		raw = raw[n:]
		char += uint32(v >> 1)
		f.keys[i], f.place[i] = char<<1|uint32(v&1), at
		at += uint32([2]int{size0, size1}[v&1])
	}
	if int(at) != len(raw) {
		panic("cellfont: an embedded font is broken")
	}
	f.data = raw
	return f
}

// find returns a glyph's data from its first byte on, or nil.
func (f *font) find(char rune, kind uint32) []byte {
	i, ok := slices.BinarySearch(f.keys, uint32(char)<<1|kind)
	if !ok {
		return nil
	}
	return f.data[f.place[i]:]
}
