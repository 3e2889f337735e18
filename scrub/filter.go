package scrub

// A filter tells by three bytes whether something may begin where they stand. Most places of most texts do not pass it,
// so that what is looked for costs little where it is not. It is three bytes, and not two, because the forms of twenty
// known values begin with a quarter of all pairs of letters.
type filter struct {
	first [256]bool
	pairs [1 << 16 / 64]uint64 // a bit a pair of bytes: small enough to stay in the nearest cache
	rows  [1 << 16]uint16      // for a pair, where its third bytes stand
	third []byteSet
}

// A byteSet has a bit for each byte.
type byteSet [4]uint64

func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 == 1 }

func pairOf(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

func (f *filter) allow(a, b, c byte) { f.row(a, b).add(c) }

// allowAny lets the pair pass with any third byte.
func (f *filter) allowAny(a, b byte) {
	*f.row(a, b) = byteSet{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
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
		f.pairs[pair>>6] |= 1 << (pair & 63)
		f.rows[pair] = uint16(len(f.third))
		f.third = append(f.third, byteSet{})
	}
	return &f.third[f.rows[pair]]
}

func (f *filter) has(pair uint16) bool { return f.pairs[pair>>6]>>(pair&63)&1 == 1 }

// next returns the first place from i on, and before the last two bytes, where something may begin; len(b)-2 or more
// where there is none.
func (f *filter) next(b []byte, i int) int {
	if i+2 >= len(b) {
		return i
	}
	pair := pairOf(0, b[i])
	for k, c := range b[i+1 : len(b)-1] {
		if pair = pair<<8 | uint16(c); f.has(pair) && f.third[f.rows[pair]].has(b[i+k+2]) {
			return i + k
		}
	}
	return len(b) - 2
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
