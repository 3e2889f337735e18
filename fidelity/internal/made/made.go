// Package made tells files that a program may have made of a time, or of a name that it drew, by their words: where a replay reads times of
// its own, these may differ for nothing, and every other difference counts.
//
// It looks at words alone. What a mask knows is taken out before, and judged where two files compare.
//
// Not goals: which files are asked for, what is read of them.
package made

import (
	"bytes"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Most bounds a text that is looked at, in bytes; a longer one may hold such a word.
const Most = 1 << 18

const (
	timeLetters = 8 // that a time has: milliseconds in base 36
	nameLetters = 5 // that a name has which was drawn; mkdtemp draws six
)

// A File is what stood at a path on two sides.
type File struct {
	words [2]map[string]bool
	odd   bool // its name has such a word, or something that stood there is no text, or was not looked at
}

// NewFile begins a file. What a mask hides of its name was drawn too: path has it.
func NewFile(path string) *File {
	return &File{words: [2]map[string]bool{{}, {}}, odd: eachWord([]byte(path), isMade)}
}

// Holds notes a text that stood there on a side, but for what masks take out.
func (f *File) Holds(side int, text []byte) {
	if eachWord(text, func(word string) bool { f.words[side][word] = true; return false }) {
		f.odd = true
	}
}

// HoldsUnread notes that something stood there that was not looked at.
func (f *File) HoldsUnread() { f.odd = true }

// May reports whether the file may differ for nothing: its name may be made of a time (two that were drawn may have changed places), or a
// word that one side has alone.
func (f *File) May() bool {
	if f.odd {
		return true
	}
	for side := range f.words {
		for word := range f.words[side] {
			if !f.words[1-side][word] && isMade(word) {
				return true
			}
		}
	}
	return false
}

// eachWord calls f for each word of a text until f says true, and reports whether it did. Of what is no text it says so too.
func eachWord(text []byte, f func(word string) bool) bool {
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return true
	}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if f(string(word)) {
			return true
		}
	}
	return false
}

// plain is a word in the letters of a person's: firstSecondThird.
var plain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]?[a-z]+([A-Z][a-z]{2,})*$`) })

// isMade reports whether a word is no person's: a long one with digits, or one with a letter behind a digit, or with upper case behind its
// first letter and lower case in another way than firstSecond.
func isMade(word string) bool {
	if len(word) < nameLetters {
		return false
	}
	digits, lower, upper := false, false, false
	for i, r := range word {
		digit := unicode.IsDigit(r)
		if digits && !digit {
			return true
		}
		digits, lower, upper = digits || digit, lower || unicode.IsLower(r), upper || i > 0 && unicode.IsUpper(r)
	}
	return digits && len(word) >= timeLetters || lower && upper && !plain().MatchString(word)
}
