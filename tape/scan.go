package tape

import (
	"encoding/base64"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A scanner reads the JSON of one line, and the values that the format is made of.
type scanner struct {
	jsonscan.Scanner

	// arena holds the decoded strings of the line, so that they cost one allocation together.
	arena strings.Builder
}

func (s *scanner) reset(b []byte) {
	s.Reset(b)
	s.arena = strings.Builder{}
}

// scannerOf returns a scanner that stands before b.
func scannerOf(b []byte) *scanner {
	s := new(scanner)
	s.Reset(b)
	return s
}

// text reads a string. It shares memory with the other strings of its line.
func (s *scanner) text() string {
	b := s.TextBytes()
	if common := intern(b); common != "" || len(b) == 0 {
		return common
	}
	if s.arena.Cap() == 0 {
		// Decoded strings are no longer than their JSON: this is room for all that may still come.
		s.arena.Grow(len(b) + len(s.Rest()))
	}
	at := s.arena.Len()
	s.arena.Write(b)
	return s.arena.String()[at:]
}

// intern returns a string that is already in memory, or "".
func intern(b []byte) string {
	switch string(b) {
	case "record":
		return "record"
	case "user_script":
		return "user_script"
	case "runtime_finalize":
		return "runtime_finalize"
	case "wall":
		return "wall"
	case "monotonic":
		return "monotonic"
	}
	return ""
}

// field reads the value of key and keeps both.
func (s *scanner) field(key []byte) Field {
	f := Field{Name: string(key)}
	f.Value = append(f.Value, s.Raw()...)
	return f
}

func (s *scanner) digest() cas.Digest {
	var d cas.Digest
	if err := d.UnmarshalText(s.TextBytes()); err != nil {
		s.Wrap(err)
	}
	return d
}

func (s *scanner) base64() []byte {
	b, err := base64.StdEncoding.Strict().AppendDecode(nil, s.TextBytes())
	if err != nil {
		s.Fail("not base64")
	}
	return b
}

func (s *scanner) header() HeaderField {
	var h HeaderField
	n := 0
	for s.Begin('['); s.More(']'); n++ {
		switch n {
		case 0:
			h.Name = s.text()
		case 1:
			h.Value = s.text()
		default:
			s.Fail("a header is [name,value]")
		}
	}
	if n < 2 {
		s.Fail("a header is [name,value]")
	}
	return h
}

// peekKind returns the value of the key "kind" of the object that comes next, and stays before that object.
func (s *scanner) peekKind() []byte {
	at := s.Mark()
	defer func() { s.Back(at) }()
	var name []byte
	found := false
	for s.Begin('{'); s.More('}'); {
		if key := s.Key(); string(key) != "kind" {
			s.Skip()
			continue
		}
		name, found = s.TextBytes(), true
		break
	}
	if !found {
		s.Fail("kind has no name")
	}
	return name
}
