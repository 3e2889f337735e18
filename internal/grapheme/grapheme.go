// Package grapheme says where the characters that people see begin in a text, and how many columns of a terminal each takes.
//
// Boundaries are those of extended grapheme clusters in UAX 29, by the tables of Version, rules GB1 to GB999 with GB9c. Next
// takes one code point after the other, so a text may come in pieces.
//
// A terminal gives every code point the columns that wcwidth gives it, and programs count on that: a spacing mark and each
// consonant of an Indic conjunct stand in a column of their own although UAX 29 makes one cluster of them. JoinsCell tells which
// code points of a cluster share the cell of what stands before: marks, what follows a joiner in an emoji, a second regional
// indicator, a skin tone, vowels and finals of conjoining Hangul.
//
// tables.bin is written by gen from the Unicode Character Database.
package grapheme

import _ "embed" // the tables

//go:generate go run ./gen -o tables.bin -tests testdata/GraphemeBreakTest.txt

// class is a Grapheme_Cluster_Break, with those told apart that Indic_Conjunct_Break and Extended_Pictographic tell apart. The
// order is that of gen.
type class uint8

const (
	classAny class = iota
	classCR
	classLF
	classControl
	classExtend        // InCB=Extend
	classExtendOutside // Extend that is in no conjunct
	classLinker
	classZWJ
	classRegional
	classPrepend
	classSpacing
	classL
	classV
	classT
	classLV
	classLVT
	classPictographic
	classConsonant
)

// Version is the version of Unicode that the tables are of.
const Version = "17.0.0"

// packed is the length of the index in two bytes, the index, and the blocks: the properties of 128 code points each.
//
//go:embed tables.bin
var packed string

// index holds the number of each block in two bytes; what lies behind it is in the last.
var index, blocks = packed[2 : 2+indexLen()], packed[2+indexLen():]

func indexLen() int { return int(packed[0])<<8 | int(packed[1]) }

const blockBits = 7

func property(r rune) byte {
	i := int(r>>blockBits) * 2
	if r < 0 || r > 0x10ffff {
		return 1 << 5
	}
	if i >= len(index) {
		i = len(index) - 2
	}
	block := int(index[i])<<8 | int(index[i+1])
	return blocks[block<<blockBits|int(r)&(1<<blockBits-1)]
}

func classOf(r rune) class { return class(property(r) & 0x1f) }

// Width is how many columns a code point takes by itself: 0 (controls, marks, format characters), 1 or 2. Ambiguous ones take 1.
func Width(r rune) int {
	if r >= ' ' && r < 0x7f {
		return 1
	}
	return int(property(r) >> 5 & 3)
}

// VariationWide reports whether an emoji that is drawn in one column, as text, is drawn in two with VARIATION SELECTOR-16
// behind it.
func VariationWide(r rune) bool { return property(r)>>7 == 1 }

// A State is what stands before a place in a text, as far as it matters to the next boundary. Zero is the beginning of a text.
// It is comparable.
type State struct {
	prev    class
	begun   bool
	odd     bool  // an odd number of regional indicators stands before
	emoji   bool  // a pictograph and marks stand before
	joined  bool  // and a joiner
	conjunc uint8 // 1: a consonant, with marks; 2: with a linker among them
}

// Next returns the state after r, and whether a cluster begins with r.
func Next(s State, r rune) (State, bool) {
	c := classOf(r)
	boundary := !s.begun || breaks(s, c)
	next := State{prev: c, begun: true}
	next.odd = c == classRegional && (boundary || !s.odd)
	switch c {
	case classPictographic:
		next.emoji = true
	case classExtend, classExtendOutside, classLinker:
		next.emoji = s.emoji && !s.joined
	case classZWJ:
		next.emoji, next.joined = s.emoji && !s.joined, s.emoji && !s.joined
	}
	switch {
	case c == classConsonant:
		next.conjunc = 1
	case c == classLinker && s.conjunc > 0:
		next.conjunc = 2
	case c == classExtend || c == classZWJ:
		next.conjunc = s.conjunc
	}
	return next, boundary
}

// breaks reports whether a cluster ends between what s stands for and a code point of class c. The comments name the rules.
func breaks(s State, c class) bool {
	switch p := s.prev; {
	case p == classCR && c == classLF: // GB3
		return false
	case p == classCR, p == classLF, p == classControl, c == classCR, c == classLF, c == classControl: // GB4, GB5
		return true
	case p == classL && (c == classL || c == classV || c == classLV || c == classLVT), // GB6
		(p == classLV || p == classV) && (c == classV || c == classT), // GB7
		(p == classLVT || p == classT) && c == classT:                 // GB8
		return false
	case c == classExtend, c == classExtendOutside, c == classLinker, c == classZWJ, // GB9
		c == classSpacing, p == classPrepend: // GB9a, GB9b
		return false
	case c == classConsonant && s.conjunc == 2, // GB9c
		c == classPictographic && s.joined,                // GB11
		c == classRegional && p == classRegional && s.odd: // GB12, GB13
		return false
	}
	return true // GB999
}

// JoinsCell reports whether r, at whose beginning no boundary is after s, shares the terminal's cell with what stands before.
func JoinsCell(s State, r rune) bool {
	if Width(r) == 0 {
		return true
	}
	switch c := classOf(r); c {
	case classPictographic:
		return s.joined
	case classRegional, classExtend, classExtendOutside, classLinker: // a skin tone is a mark of width 2
		return true
	case classL, classLV, classLVT: // of conjoining Hangul: leading consonants gather before one vowel
		return false
	}
	return false
}
