package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A message is a frame, taken apart. Its parts share the frame's memory.
type message struct {
	method    string
	called    bool // there is a method
	id        []byte
	params    []byte
	result    []byte // nil where there is none
	failure   []byte // of a reply, nil where there is none
	badParams bool
}

// reply reports whether it answers a call.
func (m *message) reply() bool { return !m.called && (m.result != nil || m.failure != nil) }

// The keys of an envelope, as bits of what was seen.
const (
	seenVersion = 1 << iota
	seenID
	seenMethod
	seenParams
	seenResult
	seenError
)

// parse takes a frame apart. The error says how it is answered; m.id then is the id to answer with, nil for null.
func (m *message) parse(s *jsonscan.Scanner, frame []byte) *Error {
	*m = message{}
	if !utf8.Valid(frame) {
		return Errorf(CodeParse, "parse error: %v", jsonscan.ValidUTF8(frame))
	}
	s.Reset(frame)
	if s.Peek() != '{' {
		return notObject(s)
	}
	wrong := m.members(s)
	if err := s.End(); err != nil {
		m.id = nil
		return Errorf(CodeParse, "parse error: %v", err)
	}
	if wrong == "" {
		wrong = m.misshapen()
	}
	if wrong != "" {
		return Errorf(CodeInvalidRequest, "invalid request: %s", wrong)
	}
	return nil
}

// notObject tells JSON that is no request from what is no JSON.
func notObject(s *jsonscan.Scanner) *Error {
	batch := s.Peek() == '['
	s.Skip()
	if err := s.End(); err != nil {
		return Errorf(CodeParse, "parse error: %v", err)
	}
	if batch {
		return Errorf(CodeInvalidRequest, "invalid request: batches are not taken: send each request in a frame of its own")
	}
	return Errorf(CodeInvalidRequest, "invalid request: want an object")
}

// members reads the members of the envelope. What is wrong with one does not end the reading: whether the frame is JSON at all
// comes first.
func (m *message) members(s *jsonscan.Scanner) (wrong string) {
	seen, twice := 0, 0
	for s.Begin('{'); s.More('}'); {
		bit := keyBit(s.Key())
		if seen&bit != 0 {
			wrong = "a key of the envelope stands twice"
			twice |= bit
		}
		seen |= bit
		if why := m.member(s, bit); why != "" && wrong == "" {
			wrong = why
		}
	}
	if twice&seenID != 0 {
		m.id = nil // which one is meant?
	}
	return wrong
}

func keyBit(key []byte) int {
	switch string(key) {
	case "jsonrpc":
		return seenVersion
	case "id":
		return seenID
	case "method":
		return seenMethod
	case "params":
		return seenParams
	case "result":
		return seenResult
	case "error":
		return seenError
	}
	return 0
}

// member reads the value of one key.
func (m *message) member(s *jsonscan.Scanner, bit int) (wrong string) {
	switch bit {
	case seenVersion:
		if raw := s.Raw(); string(raw) != `"2.0"` {
			return `jsonrpc is not "2.0"`
		}
	case seenID:
		return m.takeID(s.Raw())
	case seenMethod:
		m.called = true
		if s.Peek() != '"' {
			s.Skip()
			return "method is no string"
		}
		m.method = s.Text()
	case seenParams:
		m.params = s.Raw()
		if len(m.params) > 0 && m.params[0] != '{' && m.params[0] != '[' {
			m.badParams = m.params[0] != 'n'
			m.params = nil
		}
	case seenResult:
		m.result = s.Raw()
	case seenError:
		if m.failure = s.Raw(); string(m.failure) == "null" {
			m.failure = nil // beside a result, as version 1 had it
		}
	default:
		s.Skip()
	}
	return ""
}

func (m *message) takeID(raw []byte) (wrong string) {
	switch {
	case len(raw) == 0:
		return ""
	case len(raw) > MaxID:
		return "id is too long"
	case raw[0] == '"', raw[0] == '-', raw[0] == 'n', raw[0]-'0' <= 9:
		m.id = raw
		return ""
	}
	return "id is neither string nor number nor null"
}

// misshapen says why well-formed members make neither a request nor a reply.
func (m *message) misshapen() string {
	if m.failure != nil && string(m.result) == "null" {
		m.result = nil // as version 1 had it
	}
	switch answers := m.result != nil || m.failure != nil; {
	case m.called && answers:
		return "both a request and a reply"
	case m.called:
		return ""
	case m.result != nil && m.failure != nil:
		return "both a result and an error"
	case !answers:
		return "no method"
	}
	return ""
}

// parseFailure reads the error of a reply, whatever shape the peer gave it.
func parseFailure(raw []byte) *Error {
	e := &Error{Code: CodeInternal}
	var s jsonscan.Scanner
	s.Reset(raw)
	if s.Peek() != '{' {
		e.Message = string(raw)
		return e
	}
	for s.Begin('{'); s.More('}'); {
		switch key := s.Key(); {
		case string(key) == "code" && s.Peek() != '"':
			e.Code = code(s.Raw())
		case string(key) == "message" && s.Peek() == '"':
			e.Message = s.Text()
		case string(key) == "data":
			e.Data = bytes.Clone(s.Raw())
		default:
			s.Skip()
		}
	}
	return e
}

// code reads the code of an error; CodeInternal where it is none.
func code(raw []byte) int {
	var s jsonscan.Scanner
	s.Reset(raw)
	n := jsonscan.Integer[int](&s)
	if s.End() != nil {
		return CodeInternal
	}
	return n
}

// appendID appends an id of the peer; nil is null.
func appendID(dst, id []byte) []byte {
	if len(id) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}

// appendValue appends a result or params as JSON on one line.
func appendValue(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case json.RawMessage:
		if len(v) == 0 {
			return append(dst, "null"...), nil
		}
		return append(dst, v...), nil
	case Appender:
		return v.AppendJSON(dst)
	}
	b, err := json.Marshal(v)
	return append(dst, b...), err
}

// appendError appends the reply that says e.
func appendError(dst, id []byte, e *Error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendID(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = jsonscan.AppendText(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, "}}"...)
}

// appendResult appends the reply that carries v.
func appendResult(dst, id []byte, v any) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = appendID(dst, id)
	dst = append(dst, `,"result":`...)
	dst, err := appendValue(dst, v)
	return append(dst, '}'), err
}

// appendCall appends a request, or a notification where id is "".
func appendCall(dst []byte, id, method string, params any) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if id != "" {
		dst = append(dst, `"id":`...)
		dst = jsonscan.AppendText(dst, id)
		dst = append(dst, ',')
	}
	dst = append(dst, `"method":`...)
	dst = jsonscan.AppendText(dst, method)
	if params == nil {
		return append(dst, '}'), nil
	}
	dst = append(dst, `,"params":`...)
	dst, err := appendValue(dst, params)
	return append(dst, '}'), err
}
