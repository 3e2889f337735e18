package runtrace

import (
	"bytes"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Parse reads a line of a trace, with its newline or without. What it returns shares no memory with the line.
func Parse(line []byte) (Record, error) {
	if err := jsonscan.ValidUTF8(line); err != nil {
		return Record{}, err
	}
	switch tag, err := Tag(line); {
	case err != nil:
		return Record{}, err
	case tag == tagStarted:
		s := new(Started)
		return Record{Started: s}, parse(line, s.field)
	case tag == tagTurn:
		t := new(Turn)
		return Record{Turn: t}, parseTurn(bytes.Clone(line), t)
	default:
		e := new(Ended)
		return Record{Ended: e}, parse(line, e.field)
	}
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
	return parseTurn(bytes.Clone(b), t)
}

func parseTurn(b []byte, t *Turn) error {
	var s jsonscan.Scanner
	s.Reset(b)
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
	object(s, t.field)
	if t.VerifierVerdict == "" {
		t.VerifierVerdict = VerdictNotRun
	}
}

// parse calls field for each key; it reads the value or steps over it.
func parse(b []byte, field func(s *jsonscan.Scanner, key []byte)) error {
	var s jsonscan.Scanner
	s.Reset(b)
	object(&s, field)
	return s.End()
}

func object(s *jsonscan.Scanner, field func(s *jsonscan.Scanner, key []byte)) {
	for s.Begin('{'); s.More('}'); {
		field(s, s.Key())
	}
}

func (t *Turn) field(s *jsonscan.Scanner, key []byte) {
	switch string(key) {
	case "index":
		t.Index = index(s)
	case "prompt":
		t.Prompt = text(s)
	case "tool":
		t.Tool = text(s)
	case "parameters":
		t.Parameters = s.Raw()
	case "output":
		t.Output = s.Raw()
	case "error":
		t.Error = textIfAny(s)
	case "cli_outcome":
		t.CLIOutcome = nil
		if !s.Null() {
			t.CLIOutcome = new(CLIOutcome)
			object(s, t.CLIOutcome.field)
		}
	case "verifier_verdict":
		t.VerifierVerdict = verdict(s)
	case "policy_rejected":
		t.PolicyRejected = nil
		if !s.Null() {
			t.PolicyRejected = new(PolicyRejected)
			object(s, t.PolicyRejected.field)
		}
	default:
		s.Skip()
	}
}

func (o *CLIOutcome) field(s *jsonscan.Scanner, key []byte) {
	switch string(key) {
	case "outcome":
		o.Outcome = plain(s)
	case "code":
		o.Code = nil
		if !s.Null() {
			code := jsonscan.Integer[int](s)
			o.Code = &code
		}
	default:
		s.Skip()
	}
}

func (p *PolicyRejected) field(s *jsonscan.Scanner, key []byte) {
	switch string(key) {
	case "rule":
		p.Rule = plain(s)
	case "param":
		p.Param = text(s)
	case "reason":
		p.Reason = plain(s)
	default:
		s.Skip()
	}
}

func (st *Started) field(s *jsonscan.Scanner, key []byte) {
	switch string(key) {
	case "run_id":
		st.RunID = plain(s)
	case "agent_id":
		st.AgentID = plain(s)
	case "agent_name":
		st.AgentName = text(s)
	case "client_id":
		st.ClientID = text(s)
	case "intent":
		st.Intent = plain(s)
	case "outcome_description":
		st.OutcomeDescription = text(s)
	case "started_at":
		st.StartedAt = plain(s)
	case "recording":
		st.Recording = nil
		if !s.Null() {
			st.Recording = new(Recording)
			object(s, st.Recording.field)
		}
	default:
		s.Skip()
	}
}

func (r *Recording) field(s *jsonscan.Scanner, key []byte) {
	switch string(key) {
	case "id":
		r.ID = plain(s)
	case "path":
		r.Path = plain(s)
	default:
		s.Skip()
	}
}

func (e *Ended) field(s *jsonscan.Scanner, key []byte) {
	switch string(key) {
	case "run_id":
		e.RunID = plain(s)
	case "agent_id":
		e.AgentID = plain(s)
	case "status":
		e.Status = Status(plain(s))
	case "outcome":
		e.Outcome = bytes.Clone(s.Raw())
		if string(e.Outcome) == "null" {
			e.Outcome = nil
		}
	case "ended_at":
		e.EndedAt = plain(s)
	default:
		s.Skip()
	}
}

// index reads an index; whatever else stands there is 0, for a client's index counts for nothing.
func index(s *jsonscan.Scanner) int {
	raw := s.Raw()
	var n jsonscan.Scanner
	n.Reset(raw)
	i := jsonscan.Integer[int](&n)
	if n.End() != nil || i < 0 {
		return 0
	}
	return i
}

// text reads a string; null is nil.
func text(s *jsonscan.Scanner) *string {
	if s.Null() {
		return nil
	}
	v := s.Text()
	return &v
}

// textIfAny reads a string; of anything else, which clients of the protocol may send under a key that is ours alone, nothing is kept.
func textIfAny(s *jsonscan.Scanner) *string {
	if s.Peek() != '"' {
		s.Skip()
		return nil
	}
	v := s.Text()
	return &v
}

// plain reads a string; null is "".
func plain(s *jsonscan.Scanner) string {
	if s.Null() {
		return ""
	}
	return s.Text()
}

// verdict reads that of a turn, nearly always one of the few that there are.
func verdict(s *jsonscan.Scanner) string {
	if s.Null() {
		return ""
	}
	switch v := s.TextBytes(); string(v) {
	case VerdictNotRun:
		return VerdictNotRun
	case VerdictPass:
		return VerdictPass
	case VerdictFail:
		return VerdictFail
	default:
		return string(v)
	}
}
