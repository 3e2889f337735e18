package scrub

import "github.com/tapedeck-dev/tapedeck/scrub/internal/chars"

// nameEnds has the last three letters of the names that may say something, five bits each: of most words of a text it tells at once
// that they are none.
var nameEnds = func() (ends [1 << 15 / 64]uint64) {
	add := func(name string) {
		at := endOf([]byte(name), len(name))
		ends[at/64] |= 1 << (at % 64)
	}
	for _, name := range plainNames {
		add(name)
	}
	for last := range lastWords {
		for _, word := range lastWords[last] {
			add(word)
		}
		for _, h := range namesOfHeaders[last] {
			add(h.name)
		}
	}
	return ends
}()

// endOf is where the three letters that end before i have their bit.
func endOf(b []byte, i int) int {
	return int(b[i-3]&0x1f)<<10 | int(b[i-2]&0x1f)<<5 | int(b[i-1]&0x1f)
}

// mayEndName tells whether what ends before i may be a name that says something. Of a variable's, in capitals, any word may, and
// digits may follow.
func mayEndName(b []byte, i int) bool {
	if i < 3 {
		return false
	}
	if last := b[i-1]; !chars.IsLower(last) {
		return chars.IsUpper(last) || chars.IsDigit(last)
	}
	at := endOf(b, i)
	return nameEnds[at/64]>>(at%64)&1 != 0
}
