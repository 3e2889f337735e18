package scrub

import (
	"bytes"
	"slices"
)

// A model's answer comes as a stream of events, and a key that the model says comes as the text of several of them:
//
//	data: {"delta":{"text":"sk-ab"}}
//
//	data: {"delta":{"text":"cdef"}}
//
// A known value is followed from the end of one string to a string of a later event. Its placeholder stands where its first
// part stood, and the other parts become empty, so that who puts the texts together gets the placeholder.
//
// Which strings belong together is told by the bytes that follow them: those of one field have the same. An event without
// such a string (a ping) may stand between two parts, one with another text may not.
//
// A value is followed through maxShape bytes, and through what is plain or escaped as JSON; not through base64 or hex, and
// no shape is: a key that is not known is not found in parts.
const (
	maxSkipped = 8    // events between two parts
	maxRest    = 4096 // bytes from a part to the end of its string or line
	maxTries   = 1000 // strings in which the next part is looked for, in all
	alike      = 6    // bytes behind the strings of one field that are the same
)

// A bridge follows one value from event to event.
type bridge struct {
	*walker
	begin int    // of the value
	after []byte // what follows each string that holds a part
	tries int
}

// bridged goes on with a value that begins at begin and whose first part ends at i, before the quotation mark that ends
// its string; want is left of it.
func (w *walker) bridged(begin, i int, want []byte) ([]span, outcome) {
	br := &bridge{walker: w, begin: begin}
	var o outcome
	var parts []span
	if br.after, o = behind(w.t, i+1); o == hit {
		parts, o = br.from(i, want)
	}
	if o == more && len(w.t.b)-begin >= maxShape {
		return nil, miss
	}
	if o != hit {
		return nil, o
	}
	return append([]span{w.span(begin, i)}, parts...), hit
}

// behind returns what follows a string that ends before i, on its line.
func behind(t text, i int) (after []byte, o outcome) {
	for end := i; ; end++ {
		switch {
		case end-i == alike:
			return t.b[i:end], hit
		case end >= len(t.b) && !t.final:
			return nil, more
		case end >= len(t.b) || t.b[end] == '\n':
			return t.b[min(i, end):end], hit
		}
	}
}

// from returns the parts of want in the events after the string that ends at i.
func (br *bridge) from(i int, want []byte) (parts []span, o outcome) {
	b := br.t.b
	if i-br.begin > maxShape {
		return nil, miss
	}
	rest := b[i:min(len(b), i+maxRest)]
	eol := bytes.IndexByte(rest, '\n')
	if eol < 0 {
		if len(rest) == maxRest {
			return nil, miss
		}
		return nil, br.t.ended()
	}
	skipped := 0
	for at := i + eol + 1; ; {
		if at >= len(b) {
			return nil, br.t.ended()
		}
		line, whole := lineAt(b, at)
		if bytes.HasPrefix(line, []byte("data:")) {
			parts, field, o := br.line(at, at+len(line), want)
			if skipped++; field || o != miss || skipped > maxSkipped {
				return parts, o
			}
		}
		if !whole {
			return nil, br.t.ended()
		}
		if !fieldLine(line) || at-br.begin > maxShape {
			return nil, miss
		}
		at += len(line) + 1
	}
}

// lineAt returns the line at i without its end, and whether that has come.
func lineAt(b []byte, i int) (line []byte, whole bool) {
	if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
		return b[i : i+n], true
	}
	return b[i:], false
}

// fieldLine tells whether a line can stand in a stream of events.
func fieldLine(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte("\r"))
	return len(line) == 0 || isEvents(line) || bytes.HasPrefix(line, []byte("retry:"))
}

// line returns the parts of want from the line between start and end on: the first of them is a string of it. field says
// that the line has a text of the field.
func (br *bridge) line(start, end int, want []byte) (parts []span, field bool, o outcome) {
	for i := start; i < end; i++ {
		if br.t.b[i] != '"' || !followsColon(br.t.b, i) {
			continue
		}
		if br.tries++; br.tries > maxTries {
			return nil, true, miss
		}
		switch same, o := br.sameField(i + 1); {
		case o == more:
			return nil, true, more
		case same:
			parts, o = br.part(i+1, want)
			return parts, true, o
		}
	}
	return nil, false, miss
}

// sameField tells whether the string that begins at i is of the field whose text holds the value, and not empty.
func (br *bridge) sameField(i int) (same bool, o outcome) {
	b := br.t.b
	for end := i; ; end++ {
		switch {
		case end >= len(b):
			return false, br.t.ended()
		case end-i > maxRest:
			return false, miss
		case b[end] == '\\':
			end++
		case b[end] == '"':
			after, o := behind(br.t, end+1)
			return end > i && bytes.Equal(after, br.after), o
		}
	}
}

// followsColon tells whether the quotation mark at i begins a value of a JSON object.
func followsColon(b []byte, i int) bool {
	i--
	for i > 0 && b[i] == ' ' {
		i--
	}
	return i > 0 && b[i] == ':' && b[i-1] == '"'
}

// part returns the parts of want from i on, where a string of the field begins.
func (br *bridge) part(i int, want []byte) (parts []span, o outcome) {
	end, left, o := br.run(i, want, true)
	if o == hit {
		return []span{br.blank(i, end)}, hit
	}
	if o == miss && len(left) < len(want) && br.t.b[end] == '"' {
		if parts, o = br.from(end, left); o == hit {
			return slices.Insert(parts, 0, br.blank(i, end)), hit
		}
		return nil, o
	}
	return nil, o
}

// blank is the span of a later part.
func (br *bridge) blank(start, end int) span {
	return span{from: br.begin, start: start, end: end, rank: knownRank, rule: br.p.of.rule, blank: true}
}
