package picture

import "sync"

// An lzw compresses as GIF wants it (LZW, least significant bit first, codes of up to 12 bits), two to four times as fast as
// compress/lzw on pictures of text: most of their pixels are in runs of one colour, and how far a run is known is looked up
// at once.
type lzw struct {
	lit     uint                 // bits of a pixel
	child   []uint16             // of a code and a pixel: the code of both, 0 for none
	used    []uint32             // places of child that are set
	runs    [256][]uint16        // of a pixel: the codes of 1, 2, … of it, as far as they are known
	length  [1 << maxCode]uint16 // of a code: how many of one pixel it is, 0 for others
	next    uint16               // the code that is given next
	width   uint                 // bits of a code now
	out     []byte
	acc     uint64
	pending uint
}

const maxCode = 12

var lzws = sync.Pool{New: func() any { return new(lzw) }}

// appendPixels appends what GIF has of pixels that are lit bits wide each, cut into blocks.
func appendPixels(b, pix []byte, lit uint) []byte {
	z := lzws.Get().(*lzw)
	b = appendBlocks(b, z.compress(pix, lit))
	lzws.Put(z)
	return b
}

// compress returns the codes of pixels, until the next call.
func (z *lzw) compress(pix []byte, lit uint) []byte {
	z.begin(lit)
	for i, end := 0, 0; i < len(pix); {
		i, end = z.phrase(pix, i, end)
	}
	z.emit(1<<lit + 1)
	for ; z.pending > 0; z.pending -= min(z.pending, 8) {
		z.out = append(z.out, byte(z.acc))
		z.acc >>= 8
	}
	return z.out
}

func (z *lzw) begin(lit uint) {
	if n := 1 << (maxCode + lit); len(z.child) < n {
		z.child, z.used = make([]uint16, n), z.used[:0]
	}
	z.forget()
	z.lit, z.width, z.out, z.acc, z.pending = lit, lit+1, z.out[:0], 0, 0
	z.reset()
}

// forget empties the table, at the places that are set.
func (z *lzw) forget() {
	for _, place := range z.used {
		z.child[place] = 0
	}
	z.used = z.used[:0]
}

// reset tells the reader to begin anew, and does.
func (z *lzw) reset() {
	z.emit(1 << z.lit)
	z.forget()
	z.width = z.lit + 1
	z.next = 1<<z.lit + 1 // the end's; the first that is given comes behind
	for c := range 1 << z.lit {
		z.length[c] = 1
		z.runs[c] = append(z.runs[c][:0], uint16(c))
	}
}

// phrase writes the code of the longest known text at i, and learns what comes with the next pixel. It returns where that text
// ends. end is where the run ends that i is in, if it is after i.
func (z *lzw) phrase(pix []byte, i, end int) (int, int) {
	first := pix[i]
	if end <= i {
		for end = i + 1; end < len(pix) && pix[end] == first; end++ {
		}
	}
	known := z.runs[first]
	n := min(end-i, len(known))
	code := known[n-1]
	i += n
	for ; i < len(pix); i++ {
		longer := z.child[uint(code)<<z.lit|uint(pix[i])]
		if longer == 0 {
			break
		}
		code = longer
	}
	z.emit(uint(code))
	var p byte
	if i < len(pix) {
		p = pix[i]
	}
	z.learn(code, first, p, i < len(pix))
	return i, end
}

// learn gives a code to a text with one more pixel. When there is none left it begins anew.
func (z *lzw) learn(code uint16, first, p byte, more bool) {
	z.next++
	if uint(z.next) == 1<<z.width {
		z.width++
	}
	if z.next == 1<<maxCode-1 {
		z.reset()
		return
	}
	if !more {
		return
	}
	place := uint32(code)<<z.lit | uint32(p)
	z.child[place] = z.next
	z.used = append(z.used, place)
	z.length[z.next] = 0
	if n := z.length[code]; n > 0 && first == p {
		z.length[z.next] = n + 1
		z.runs[p] = append(z.runs[p], z.next)
	}
}

func (z *lzw) emit(code uint) {
	z.acc |= uint64(code) << z.pending
	z.pending += z.width
	for z.pending >= 8 {
		z.out = append(z.out, byte(z.acc))
		z.acc >>= 8
		z.pending -= 8
	}
}
