package fidelity

import (
	"bytes"
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

// made are the paths outside the work tree where something may be made of a time, on either side, or that neither side leaves, so that it
// may have come there by a moment; nil where nobody asks.
func (c *ignoring) made() map[string]bool {
	if !c.o.Exact || c.o.OwnTimes.IsZero() {
		return nil
	}
	made, left := make(map[string]bool), make(map[string][2]bool)
	for s, e := range c.records() {
		f := tape.FileOf(e.rec.Kind)
		if f == nil || placeOf(f.Path, c.o.Watch) != outside {
			continue
		}
		_, gone := e.rec.Kind.(*tape.FileDelete)
		on := left[f.Path]
		on[s] = !gone
		left[f.Path] = on
		made[f.Path] = made[f.Path] || c.isMade(s, f)
	}
	for path, on := range left {
		made[path] = made[path] || on == [2]bool{}
	}
	return made
}

// isMade reports whether what stands at a path may be made of a time.
func (c *ignoring) isMade(s Side, f *tape.File) bool {
	content := f.Content
	if content == nil {
		content = f.Before
	}
	switch {
	case c.holdsMade(s, []byte(f.Path)):
		return true
	case content == nil:
		return false
	case content.Len > maxMade || c.o.Payload == nil:
		return true
	}
	b, err := c.o.Payload(content, s)
	return err != nil || c.holdsMade(s, b)
}

// holdsMade reports whether a text holds a word, but for what masks take out, that may be made of a time; what is no text may.
func (c *ignoring) holdsMade(s Side, text []byte) bool {
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return true
	}
	if m := c.o.Masks[s]; m != nil {
		text, _ = m.Trace(text)
	}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if isMadeWord(word) {
			return true
		}
	}
	return false
}

// isMadeWord reports whether a word is no person's: a long one with digits, or one with a letter behind a digit, or with upper case behind
// its first letter and lower case.
func isMadeWord(word []byte) bool {
	if len(word) < nameLetters {
		return false
	}
	digits, lower, upper := false, false, false
	for i, r := range string(word) {
		digit := unicode.IsDigit(r)
		if digits && !digit {
			return true
		}
		digits, lower, upper = digits || digit, lower || unicode.IsLower(r), upper || i > 0 && unicode.IsUpper(r)
	}
	return digits && len(word) >= timeLetters || lower && upper
}
