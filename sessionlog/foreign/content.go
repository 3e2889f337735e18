package foreign

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// parts is the content of a message: a text, or a list of blocks.
type parts struct {
	texts  []string          // of each block that is a text
	others []json.RawMessage // the other blocks
	all    []json.RawMessage // every block, in order; nil where others is
}

// clone is raw as memory of its own and in one line: line breaks stand in the white space of what was written for people.
func clone(raw []byte) json.RawMessage {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return bytes.Clone(raw)
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return bytes.Clone(raw) // a scanner has stepped over it, so it is a value
	}
	return b.Bytes()
}

// goal is what a prompt asks, as text.
func (p *parts) goal() string { return strings.Join(p.texts, "\n") }

// readParts reads a content: a string, a list of blocks of which those with a text are texts, or null. What it returns is its own
// memory.
func readParts(s *jsonscan.Scanner, content []byte) parts {
	var p parts
	if len(content) == 0 {
		return p
	}
	s.Reset(content)
	switch s.Peek() {
	case '"':
		p.text(s.Text())
		return p
	case '[':
	default:
		s.Skip()
		return p
	}
	for s.Begin('['); s.More(']'); {
		from := s.Offset()
		text, ok := blockText(s)
		switch {
		case s.Err() != nil:
		case ok:
			p.text(text)
		default:
			p.block(bytes.TrimLeft(s.Since(from), " \t\r\n"))
		}
	}
	return p
}

func (p *parts) text(s string) {
	if s == "" {
		return
	}
	if p.all != nil {
		p.all = append(p.all, textBlock(s))
	}
	p.texts = append(p.texts, s)
}

// block adds one whose memory is borrowed.
func (p *parts) block(b []byte) {
	if p.all == nil {
		for _, text := range p.texts {
			p.all = append(p.all, textBlock(text))
		}
	}
	own := clone(b)
	p.all = append(p.all, own)
	p.others = append(p.others, own)
}

// blockText reads a block. It is a text where it has one and says nothing else.
func blockText(s *jsonscan.Scanner) (t string, ok bool) {
	if s.Peek() == '"' {
		return s.Text(), true
	}
	if s.Peek() != '{' {
		s.Skip()
		return "", false
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "text":
			if s.Peek() == '"' {
				t, ok = s.Text(), true
				continue
			}
			s.Skip()
		default:
			s.Skip()
		}
	}
	return t, ok
}

// output is what a tool gave: a string as it stands, a list of one text as that text, anything else as it stands.
func output(s *jsonscan.Scanner, raw []byte) json.RawMessage {
	switch {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == "[]":
		return sessionlog.Text("")
	case raw[0] != '[':
		return clone(raw)
	}
	if p := readParts(s, raw); p.others == nil && len(p.texts) == 1 {
		return sessionlog.Text(p.texts[0])
	}
	return clone(raw)
}

// arguments are those of a call: an object as it stands; of a string the object in it, or the string where it holds none.
func arguments(s *jsonscan.Scanner, raw []byte) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	if raw[0] != '"' {
		return clone(raw)
	}
	s.Reset(raw)
	inner := bytes.TrimSpace(s.TextBytes())
	if len(inner) == 0 {
		return json.RawMessage("{}")
	}
	if inner[0] == '{' && jsonscan.Valid(inner) == nil {
		return clone(inner)
	}
	return bytes.Clone(raw)
}
