package scrub

import (
	"encoding/binary"
	"slices"
)

// A filter tells by three bytes whether something may begin where they stand. Most places of most texts do not pass it,
// so that what is looked for costs little where it is not. It is three bytes, and not two, because the forms of twenty
// known values begin with a quarter of all pairs of letters.
type filter struct {
	first [256]bool
	*pairs
	third []byteSet
}

// pairs are what a filter knows of each pair of bytes. They hold no pointers and are a memory of their own, which the garbage
// collector does not look into.
type pairs struct {
	near [1 << 16]uint32 // the low five bits of its third bytes: asked at every place; 0 for none
	rows [1 << 16]uint16 // where all of these stand
}

func newFilter() filter { return filter{pairs: new(pairs)} }

// clone returns a copy, to which may be added.
func (f *filter) clone() filter {
	own := *f.pairs
	return filter{f.first, &own, slices.Clone(f.third)}
}

// A byteSet has a bit for each byte.
type byteSet [4]uint64

func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 == 1 }

// pairOf is the pair of a and b, as two bytes of memory are read as one number.
func pairOf(a, b byte) uint16 { return uint16(b)<<8 | uint16(a) }

func (f *filter) allow(a, b, c byte) {
	f.row(a, b).add(c)
	f.near[pairOf(a, b)] |= 1 << (c & 31)
}

// allowAny lets the pair pass with any third byte.
func (f *filter) allowAny(a, b byte) {
	*f.row(a, b) = byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	f.near[pairOf(a, b)] = ^uint32(0)
}

// allowText lets through what s begins with: a text of two bytes or more.
func (f *filter) allowText(s string) {
	if len(s) == 2 {
		f.allowAny(s[0], s[1])
		return
	}
	f.allow(s[0], s[1], s[2])
}

func (f *filter) row(a, b byte) *byteSet {
	pair := pairOf(a, b)
	f.first[a] = true
	if !f.has(pair) {
		f.rows[pair] = uint16(len(f.third))
		f.third = append(f.third, byteSet{})
	}
	return &f.third[f.rows[pair]]
}

func (p *pairs) has(pair uint16) bool { return p.near[pair] != 0 }

// isNear tells whether the three bytes of b at i may pass. Of what is near little does not pass, so that passes is hardly ever asked
// in vain.
func (p *pairs) isNear(b *[blockLen + 2]byte, i int) bool {
	return p.near[binary.LittleEndian.Uint16(b[i:])]>>(b[i+2]&31)&1 != 0
}

// passes tells whether something may begin with these three bytes.
func (f *filter) passes(a, b, c byte) bool {
	pair := pairOf(a, b)
	return f.has(pair) && f.third[f.rows[pair]].has(c)
}

// blockLen is how many places next asks about at once: their bytes are looked up without a check of the length.
const blockLen = 8

// next returns the first place from i on, and before the last two bytes, where something may begin; len(b)-2 or more
// where there is none.
func (f *filter) next(b []byte, i int) int {
	for p := f.pairs; i+blockLen+2 <= len(b); i += blockLen {
		x := (*[blockLen + 2]byte)(b[i:])
		if p.isNear(x, 0) || p.isNear(x, 1) || p.isNear(x, 2) || p.isNear(x, 3) ||
			p.isNear(x, 4) || p.isNear(x, 5) || p.isNear(x, 6) || p.isNear(x, 7) {
			for k := range blockLen {
				if f.passes(x[k], x[k+1], x[k+2]) {
					return i + k
				}
			}
		}
	}
	for i+2 < len(b) && !f.passes(b[i], b[i+1], b[i+2]) {
		i++
	}
	return i
}

// seek returns the first place from i on where something may begin, and len(b) where there is none.
func (f *filter) seek(b []byte, i int) int {
	if i = f.next(b, i); i+2 < len(b) {
		return i
	}
	return f.tail(b, i)
}

// tail returns the first of the last two bytes, from i on, where something may begin that has not come whole; len(b)
// where there is none.
func (f *filter) tail(b []byte, i int) int {
	n := len(b)
	if i = max(i, n-2); i == n-2 {
		if f.has(pairOf(b[i], b[i+1])) {
			return i
		}
		i++
	}
	if i == n-1 && f.first[b[i]] {
		return i
	}
	return n
}
