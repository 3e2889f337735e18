package runtrace

import (
	"bytes"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Parse reads a line of a trace, with its newline or without. What it returns shares no memory with the line.
func Parse(line []byte) (r Record, err error) {
	if err := jsonscan.ValidUTF8(line); err != nil {
		return Record{}, err
	}
	tag, err := Tag(line)
	if err != nil {
		return Record{}, err
	}
	var s jsonscan.Scanner
	s.Reset(bytes.Clone(line))
	switch tag {
	case tagStarted:
		r.Started = new(Started)
		jsonscan.Strictly(&s, r.Started)
	case tagTurn:
		r.Turn = new(Turn)
		r.Turn.read(&s)
	default:
		r.Ended = new(Ended)
		if jsonscan.Strictly(&s, r.Ended); string(r.Ended.Outcome) == "null" {
			r.Ended.Outcome = nil
		}
	}
	return r, s.End()
}

// Tag returns the "record" of a line, which is "started", "turn" or "ended".
func Tag(line []byte) (string, error) {
	var s jsonscan.Scanner
	s.Reset(line)
	tag := ""
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) == "record" {
			tag = s.Text()
			break
		}
		s.Skip()
	}
	if s.Err() == nil && tag != tagStarted && tag != tagTurn && tag != tagEnded {
		s.Fail(`expected "record" to be started, turn or ended, got %q`, tag)
	}
	return tag, s.Err()
}

// UnmarshalJSON reads a turn as a client sends it: an index that is no integer counts as 0.
func (t *Turn) UnmarshalJSON(b []byte) error {
	*t = Turn{}
	var s jsonscan.Scanner
	s.Reset(bytes.Clone(b))
	t.read(&s)
	return s.End()
}

// ReadTurns reads a list of turns as clients send them, at most MaxBatch, out of what is UTF-8. They share its memory, and are
// Valid.
func ReadTurns(s *jsonscan.Scanner) []Turn {
	var turns []Turn
	from := s.Offset()
	for s.Begin('['); s.More(']'); {
		if len(turns) == MaxBatch {
			s.Fail("there are more than %d", MaxBatch)
			break
		}
		if len(turns) == 1 { // the others are about as long as the first
			turns = slices.Grow(turns, min(MaxBatch, 1+len(s.Rest())/(s.Offset()-from)))
		}
		turns = append(turns, Turn{Valid: true})
		turns[len(turns)-1].read(s)
	}
	return turns
}

func (t *Turn) read(s *jsonscan.Scanner) {
	if s.Peek() != '{' {
		s.Fail("want an object")
		return
	}
	sent := sentTurn{Turn: *t}
	jsonscan.Strictly(s, &sent)
	*t = sent.Turn
	t.Index, t.Error = int(sent.Index), sent.Error.text
	if t.VerifierVerdict == "" {
		t.VerifierVerdict = VerdictNotRun
	}
}

// A sentTurn is a turn as a client sends it.
type sentTurn struct {
	Turn
	Index anyIndex `json:"index"`
	Error anyText  `json:"error"`
}

// An anyIndex is an index; whatever else stands there is 0, for a client's index counts for nothing.
type anyIndex int

func (i *anyIndex) ReadJSON(s *jsonscan.Scanner) {
	var n jsonscan.Scanner
	n.Reset(s.Raw())
	index := jsonscan.Integer[int](&n)
	if *i = anyIndex(max(index, 0)); n.End() != nil {
		*i = 0
	}
}

// An anyText is a text; of anything else, which clients of the protocol may send under a key that is ours alone, nothing is kept.
type anyText struct{ text *string }

func (t *anyText) ReadJSON(s *jsonscan.Scanner) {
	if s.Peek() != '"' {
		s.Skip()
		return
	}
	text := s.Text()
	t.text = &text
}
