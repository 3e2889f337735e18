package tty

import (
	"encoding/binary"

	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// What was found on a screen may be drawn again in part: its first row has left the screen, another window lies over it. A piece has
// nothing that says what it is, so it is known by what was found.

const (
	gram     = 8       // bytes of the shortest piece
	maxGrams = 1 << 16 // that are remembered
)

// found has the grams of what was found, and by which rule.
type found map[uint64]string

func gramOf(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func (f found) learn(rule string, value []byte) {
	if len(value) < 2*gram || len(f)+len(value) > maxGrams || rule == "email" || rule == "account" || masked(value) {
		return
	}
	for i := 0; i+gram <= len(value); i++ {
		if _, ok := f[gramOf(value[i:])]; !ok {
			f[gramOf(value[i:])] = rule
		}
	}
}

// each calls tell for each piece in b. What could be words is none.
func (f found) each(b []byte, tell func(start, end int, rule string)) {
	if len(f) == 0 {
		return
	}
	for i := 0; i+gram <= len(b); i++ {
		rule, ok := f[gramOf(b[i:])]
		if !ok {
			continue
		}
		start := i
		for i++; i+gram <= len(b); i++ {
			if _, ok := f[gramOf(b[i:])]; !ok {
				break
			}
		}
		if end := i + gram - 1; !names.Ordinary(string(b[start:end])) {
			tell(start, end, rule)
		}
	}
}
