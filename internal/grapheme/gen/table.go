package main

import (
	"log"
	"slices"
)

const (
	maxRune   = 0x10ffff
	blockBits = 7
	blockLen  = 1 << blockBits
)

// The classes, in the order of the constants in package grapheme.
var classes = []string{
	"Any", "CR", "LF", "Control", "Extend", "ExtendOutside", "Linker", "ZWJ", "RegionalIndicator", "Prepend", "SpacingMark", "L", "V", "T",
	"LV", "LVT", "Pictographic", "Consonant",
}

func class(name string) byte {
	for i, c := range classes {
		if c == name {
			return byte(i)
		}
	}
	log.Fatalf("the database has a class %q that is not known here", name)
	return 0
}

// A table holds of each code point its class (5 bits), its width (2 bits) and whether it is an emoji of text style that
// VARIATION SELECTOR-16 makes wide (1 bit).
type table [maxRune + 1]byte

func newTable(files map[string][]byte) (*table, error) {
	t := new(table)
	err := t.breaks(files)
	if err == nil {
		err = t.widths(files)
	}
	return t, err
}

func (t *table) breaks(files map[string][]byte) error {
	err := each(files, fileBreaks, func(r rune, e *entry) {
		name := e.Property
		switch name {
		case "Regional_Indicator":
			name = "RegionalIndicator"
		case "Extend":
			name = "ExtendOutside" // until InCB says more
		}
		t[r] = class(name)
	})
	if err != nil {
		return err
	}
	err = each(files, fileDerived, func(r rune, e *entry) {
		if e.Property != "InCB" {
			return
		}
		switch {
		case e.SyllabicCategory == "Consonant" && t[r] == class("Any"):
			t[r] = class("Consonant")
		case e.SyllabicCategory == "Linker" && t[r] == class("ExtendOutside"):
			t[r] = class("Linker")
		case e.SyllabicCategory == "Extend" && t[r] == class("ExtendOutside"):
			t[r] = class("Extend")
		}
	})
	if err != nil {
		return err
	}
	return each(files, fileEmoji, func(r rune, e *entry) {
		if e.Property == "Extended_Pictographic" && t[r] == class("Any") {
			t[r] = class("Pictographic")
		}
	})
}

// widths are those of wcwidth(3) where the database does not say: a mark, a format character and the vowels and finals of
// conjoining Hangul have none; the soft hyphen and the signs that enclose a number have one.
func (t *table) widths(files map[string][]byte) error {
	var width [maxRune + 1]byte
	for r := range width {
		width[r] = 1
	}
	if err := each(files, fileWidth, func(r rune, e *entry) {
		if e.Width == "W" || e.Width == "F" {
			width[r] = 2
		}
	}); err != nil {
		return err
	}
	if err := each(files, fileCategory, func(r rune, e *entry) {
		switch e.Category {
		case "Mn", "Me", "Cf", "Cc", "Zl", "Zp", "Cs":
			width[r] = 0
		}
	}); err != nil {
		return err
	}
	if err := each(files, fileDerived, func(r rune, e *entry) {
		if e.Property == "Default_Ignorable_Code_Point" && width[r] == 1 {
			width[r] = 0
		}
	}); err != nil {
		return err
	}
	for r := range width {
		switch c := t[r]; {
		case r == 0xad, c == class("Prepend") && width[r] == 0:
			width[r] = 1
		case c == class("V"), c == class("T"):
			width[r] = 0
		}
		t[r] |= width[r] << 5
	}
	return each(files, fileEmoji, func(r rune, e *entry) {
		if e.Property == "Emoji" && width[r] == 1 {
			t[r] |= 1 << 7
		}
	})
}

// packed is the table as package grapheme embeds it: blocks of equal content once, and the index of each block before them.
func (t *table) packed() []byte {
	var blocks, index []byte
	seen := make(map[string]int)
	for at := 0; at <= maxRune; at += blockLen {
		block := string(t[at : at+blockLen])
		n, ok := seen[block]
		if !ok {
			n = len(seen)
			seen[block] = n
			blocks = append(blocks, block...)
		}
		index = append(index, byte(n>>8), byte(n))
	}
	for len(index) > 2 && index[len(index)-1] == index[len(index)-3] && index[len(index)-2] == index[len(index)-4] {
		index = index[:len(index)-2] // the last block goes on to the end
	}
	return slices.Concat([]byte{byte(len(index) >> 8), byte(len(index))}, index, blocks)
}
