package tape

import (
	"strings"

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
