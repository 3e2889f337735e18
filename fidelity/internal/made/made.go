// Package made tells files that a program may have made of a time, or of a name that it drew, by their words: where a replay reads times of
// its own, these may differ for nothing, and every other difference counts.
//
// It looks at words alone. What a mask knows is taken out before, and judged where two files compare.
//
// Not goals: which files are asked for, what is read of them.
package made

import (
	"bytes"
	"maps"
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

// Files are what stood at the paths of two sides.
type Files map[string]*File

// A File is what stood at a path on two sides.
type File struct {
	words [2]map[string]bool
	drawn bool // its name has such a word
	odd   bool // something that stood there is no text, or was not looked at
}

// At is the file of a path. What a mask hides of its name was drawn too: path has it.
func (fs Files) At(path string) *File {
	f := fs[path]
	if f == nil {
		f = &File{words: [2]map[string]bool{{}, {}}, drawn: eachWord([]byte(path), isMade)}
		fs[path] = f
	}
	return f
}

// Holds notes a text that stood there on a side, but for what masks take out.
func (f *File) Holds(side int, text []byte) {
	if eachWord(text, func(word string) bool { f.words[side][word] = true; return false }) {
		f.HoldsUnread(side, string(text))
	}
}

// HoldsUnread notes that something stood there on a side that is no text, or was not looked at, and what tells it from others.
func (f *File) HoldsUnread(side int, id string) { f.odd, f.words[side][id] = true, true }

// Differs reports whether each side held something that the other did not.
func (f *File) Differs() bool { return f.alone(0, nil) && f.alone(1, nil) }

// same reports whether both sides hold the same words, and some.
func (f *File) same() bool { return len(f.words[0]) > 0 && maps.Equal(f.words[0], f.words[1]) }

// alone reports whether a side has a word alone, but for those of except.
func (f *File) alone(side int, except map[string]bool) bool {
	for word := range f.words[side] {
		if !f.words[1-side][word] && !except[word] {
			return true
		}
	}
	return false
}

// May returns the files that may differ for nothing: they hold what is no text, or a word that may be made of a time and one side has alone;
// or their name was drawn, and what both sides have alone is in such files of the other, for two names may have changed places. Where both hold the
// same words, what differs is no time that a word was made of.
func (fs Files) May() map[string]bool {
	drawn := [2]map[string]bool{{}, {}}
	for _, f := range fs {
		for side := range f.words {
			if f.drawn {
				maps.Copy(drawn[side], f.words[side])
			}
		}
	}
	may := make(map[string]bool, len(fs))
	for path, f := range fs {
		may[path] = f.odd || f.madeAlone() || f.drawn && !f.same() && (!f.Differs() || !f.alone(0, drawn[1]) && !f.alone(1, drawn[0]))
	}
	return may
}

// madeAlone reports whether a word that may be made of a time is one side's alone.
func (f *File) madeAlone() bool {
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
