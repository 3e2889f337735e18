package fidelity

import (
	"bytes"
	"regexp"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Where a replay read times of its own, a time may have made a file differ, or the order in which threads drew names. What a mask knows is
// judged where two files compare; a word made in another form is not. So files outside the work tree that hold such a word do not
// gate, and those without do: another text, a file more, another mode.

// Bounds of what is looked at.
const (
	maxMade     = 1 << 18 // of a text; a longer one may hold such a word
	timeLetters = 8       // that a time has: milliseconds in base 36
	nameLetters = 5       // that a name has which was drawn; mkdtemp draws six
)

// An outsideFile is what both sides tell of a path outside the work tree.
type outsideFile struct {
	words [2]map[string]bool // of all that stood there, but for what masks take out
	told  [2]bool
	came  [2]bool // it was not there before
	gone  [2]bool // in the end
	odd   bool    // its name has such a word, or something that stood there is no text, or is too long to look at
}

// passed reports whether it came and went on each side that tells of it: then it may have come there by a moment.
func (f *outsideFile) passed() bool {
	for s := range f.told {
		if f.told[s] && (!f.came[s] || !f.gone[s]) {
			return false
		}
	}
	return true
}

// isMade reports whether its name may be made of a time, or a word that one side has alone: two that were drawn may have changed places.
func (f *outsideFile) isMade() bool {
	for s := range f.words {
		for word := range f.words[s] {
			if !f.words[1-s][word] && isMadeWord(word) {
				return true
			}
		}
	}
	return f.odd
}

// made are the paths outside the work tree where something may be made of a time, on either side, or may have come by a moment; nil where
// nobody asks.
func (c *ignoring) made() map[string]bool {
	if !c.o.Exact || c.o.OwnTimes.IsZero() {
		return nil
	}
	files := make(map[string]*outsideFile)
	for s, e := range c.records() {
		k := tape.FileOf(e.rec.Kind)
		if k == nil || placeOf(k.Path, c.o.Watch) != outside {
			continue
		}
		f := files[k.Path]
		if f == nil {
			f = &outsideFile{words: [2]map[string]bool{{}, {}}}
			f.odd = eachWord([]byte(k.Path), isMadeWord) // what a mask hides of a name was drawn too
			files[k.Path] = f
		}
		_, gone := e.rec.Kind.(*tape.FileDelete)
		if !f.told[s] {
			f.told[s], f.came[s] = true, k.Before == nil && !gone
		}
		f.gone[s] = gone
		c.take(f, s, k)
	}
	made := make(map[string]bool, len(files))
	for path, f := range files {
		made[path] = f.passed() || f.isMade()
	}
	return made
}

// take takes the words of a file as a side has it.
func (c *ignoring) take(f *outsideFile, s Side, k *tape.File) {
	content := k.Content
	if content == nil {
		content = k.Before
	}
	switch {
	case content == nil:
	case content.Len > maxMade || c.o.Payload == nil:
		f.odd = true
	default:
		b, err := c.o.Payload(content, s)
		f.odd = f.odd || err != nil
		if m := c.o.Masks[s]; m != nil {
			b, _ = m.Trace(b)
		}
		f.odd = eachWord(b, func(word string) bool { f.words[s][word] = true; return false }) || f.odd
	}
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

// plainWord is a word in the letters of a person's: firstSecondThird.
var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z]?[a-z]+([A-Z][a-z]{2,})*$`) })

// isMadeWord reports whether a word is no person's: a long one with digits, or one with a letter behind a digit, or with upper case behind
// its first letter and lower case in another way than firstSecond.
func isMadeWord(word string) bool {
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
	return digits && len(word) >= timeLetters || lower && upper && !plainWord().MatchString(word)
}
