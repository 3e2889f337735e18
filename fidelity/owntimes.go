package fidelity

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Where a replay read times of its own, a time may have made a file differ. What a mask knows is judged where two files compare; a name
// made of a time in another form is not. So files outside the work tree that hold a word which may be one do not gate, and those without do:
// another text, a file more, another mode.

// maxTelling is how long a text is looked through; a longer one may tell a time.
const maxTelling = 1 << 18

// aTime is how long a word of letters and digits is that may be a time: milliseconds in base 36.
const aTime = 8

// telling are the paths outside the work tree where something may tell a time, on either side; nil where nobody asks.
func (c *ignoring) telling() map[string]bool {
	if !c.o.Exact || c.o.OwnTimes.IsZero() {
		return nil
	}
	tells := make(map[string]bool)
	for s, e := range c.records() {
		if f := tape.FileOf(e.rec.Kind); f != nil && placeOf(f.Path, c.o.Watch) == outside && !tells[f.Path] {
			tells[f.Path] = c.tells(s, f)
		}
	}
	return tells
}

// tells reports whether what stands at a path may tell a time.
func (c *ignoring) tells(s Side, f *tape.File) bool {
	content := f.Content
	if content == nil {
		content = f.Before
	}
	switch {
	case c.tellsTime(s, []byte(f.Path)):
		return true
	case content == nil:
		return false
	case content.Len > maxTelling || c.o.Payload == nil:
		return true
	}
	b, err := c.o.Payload(content, s)
	return err != nil || c.tellsTime(s, b)
}

// tellsTime reports whether a word of a text, but for what masks take out, may be made of a time; what is no text may.
func (c *ignoring) tellsTime(s Side, text []byte) bool {
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return true
	}
	if m := c.o.Masks[s]; m != nil {
		text, _ = m.Trace(text)
	}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(word) >= aTime && bytes.ContainsFunc(word, unicode.IsDigit) {
			return true
		}
	}
	return false
}
