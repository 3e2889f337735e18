package mcp

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// A Line is one line of a conversation without its secrets.
type Line struct {
	Text     []byte    // as it stands on the tape
	Messages []Message // of Text; nil where it is no JSON-RPC
	Batch    bool
}

// Redact takes the secrets out of a line of JSON-RPC: within strings, so that JSON stays what it is; a number that is one becomes
// a string. What its names tell of secrets is known from then on. A line that is no JSON-RPC comes back without messages, and with
// its secrets: it may be a part of a longer text, which is scrubbed as one. Where nothing is to be taken out Text is line.
func (l *Log) Redact(from Side, line []byte) *Line {
	messages, batch, err := Parse(line)
	if err != nil {
		return &Line{Text: line}
	}
	if l.scrubber == nil {
		return &Line{line, messages, batch}
	}
	text, found := redact(l.scrubber, from, line)
	if !found {
		return &Line{line, messages, batch}
	}
	if messages, batch, err = Parse(text); err != nil {
		return &Line{Text: hidden(l.scrubber, line)}
	}
	return &Line{text, messages, batch}
}

// hidden is a line of which nothing is told but that it was there.
func hidden(s *scrub.Scrubber, line []byte) []byte {
	body := bytes.TrimRight(line, "\r\n")
	return s.HideAt(line, []scrub.Place{{End: int64(len(body)), Name: "json", Value: string(body)}})
}

// redact returns a line of JSON without its secrets, and whether it had any.
func redact(s *scrub.Scrubber, from Side, line []byte) (out []byte, found bool) {
	_, over := s.LearnAll(clean(s, s.NamedInTool(from != Client, line)))
	plain := s.HideAt(line, over)
	out, found = s.LearnBytes(plain)
	switch {
	case !found:
		return plain, len(over) > 0
	case sameShape(line, out):
		return out, true
	}
	out, _ = s.LearnBytes(hideTokens(s, plain))
	return out, true
}

// clean takes the secrets out of the names: a placeholder tells the name of what it stands for.
func clean(s *scrub.Scrubber, all []scrub.Named) []scrub.Named {
	for i := range all {
		all[i].Name = s.String(all[i].Name)
		all[i].At.Name = all[i].Name
	}
	return all
}

// sameShape reports whether b is JSON that differs from the JSON a in what its strings say alone.
func sameShape(a, b []byte) bool {
	if jsonscan.Valid(b) != nil {
		return false
	}
	for {
		i, j := bytes.IndexByte(a, '"'), bytes.IndexByte(b, '"')
		if i < 0 || j < 0 {
			return i == j && bytes.Equal(a, b)
		}
		if !bytes.Equal(a[:i], b[:j]) {
			return false
		}
		a, b = a[i+jsonscan.TextLen(a[i:]):], b[j+jsonscan.TextLen(b[j:]):]
	}
}

// hideTokens hides each string, number, true, false and null that cannot stand with what is secret in it taken out: what is no string, what a
// secret reaches over the end of, what it leaves half an escape of.
func hideTokens(s *scrub.Scrubber, line []byte) []byte {
	found := s.Find(line)
	out := make([]byte, 0, len(line))
	for at := 0; at < len(line); {
		start, end := nextToken(line, at)
		out = append(out, line[at:start]...)
		if token := line[start:end]; breaks(found, token, int64(start)) {
			out = append(append(append(out, '"'), concealed(s, token)...), '"')
		} else {
			out = append(out, token...)
		}
		at = end
	}
	return out
}

// concealed is the placeholder of a token.
func concealed(s *scrub.Scrubber, token []byte) []byte {
	token = bytes.Trim(token, `"`)
	return s.HideAt(token, []scrub.Place{{End: int64(len(token)), Name: "json", Value: string(token)}})
}

// nextToken returns where the next string or scalar from at on begins and ends: both are the line's end where there is none.
func nextToken(line []byte, at int) (start, end int) {
	for at < len(line) && bytes.IndexByte([]byte("{}[],: \t\r\n"), line[at]) >= 0 {
		at++
	}
	if at == len(line) {
		return at, at
	}
	if line[at] == '"' {
		return at, at + jsonscan.TextLen(line[at:])
	}
	n := bytes.IndexAny(line[at:], "{}[],: \t\r\n")
	if n < 0 {
		n = len(line) - at
	}
	return at, at + n
}

// breaks reports whether one of found, of the line in which the token begins at start, takes a part of it that it may not take.
func breaks(found []scrub.Range, token []byte, start int64) bool {
	end := start + int64(len(token))
	var left []byte // of a string, with an x for each secret
	at := start
	for _, r := range found {
		switch {
		case r.Start >= end || r.End <= start:
		case token[0] != '"' || r.Start <= start || r.End >= end:
			return true
		default:
			left = append(append(left, token[at-start:r.Start-start]...), 'x')
			at = r.End
		}
	}
	return left != nil && jsonscan.Valid(append(left, token[at-start:]...)) != nil
}
