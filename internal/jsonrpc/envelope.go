package jsonrpc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
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
	b, err := jsonscan.Marshal(v)
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

// NewLines makes a stream of JSON texts, one a line, of a connection. A line is at most limit bytes (0: DefaultFrame); one above
// DefaultAllowance takes what it may need from budget (nil: no bound), which it waits for, and must be whole within LongFrame
// of its beginning. Empty lines are skipped. Close codes are not sent: the connection just ends.
func NewLines(conn io.ReadWriteCloser, limit int, budget *Budget) Stream {
	l := &lines{conn: conn, in: bufio.NewReader(conn), limit: cmp.Or(limit, DefaultFrame), budget: budget}
	l.open, l.end = context.WithCancel(context.Background())
	return l
}

// LongFrame is how long a frame above DefaultAllowance may take to come in, the wait for memory included.
const LongFrame = 30 * time.Second

type lines struct {
	conn   io.ReadWriteCloser
	in     *bufio.Reader
	limit  int
	budget *Budget
	short  bool

	out []byte // frames that wait for the one behind them

	once sync.Once
	open context.Context // done once it is closed
	end  func()
}

func (l *lines) Read() ([]byte, int64, error) {
	for {
		line, held, err := l.line()
		if err == nil && len(bytes.TrimSpace(line)) > 0 {
			return line, held, nil
		}
		if l.budget.Give(held); err != nil {
			return nil, 0, err
		}
	}
}

// line returns the bytes before the next newline, in memory of their own, and how many are held of the budget for it.
func (l *lines) line() (line []byte, held int64, err error) {
	var slow *time.Timer
	for ended := false; !ended; {
		part, errRead := l.in.ReadSlice('\n')
		line = append(line, part...)
		if ended = errRead == nil; ended {
			line = line[:len(line)-1]
		}
		switch {
		case len(line) > l.limit:
			return nil, held, fmt.Errorf("%w of %d bytes: a line has none within it", ErrTooLong, l.limit)
		case len(line) >= DefaultAllowance && l.short:
			return nil, held, ErrShort
		case len(line) >= DefaultAllowance && slow == nil:
			slow = time.AfterFunc(LongFrame, func() { _ = l.Close(0, "") })
			defer slow.Stop()
			if held, err = l.takeLong(); err != nil {
				return nil, held, err
			}
		}
		if errRead != nil && !errors.Is(errRead, bufio.ErrBufferFull) {
			return nil, held, l.torn(errRead, line)
		}
	}
	if slow != nil && !slow.Stop() {
		return nil, held, ErrClosed
	}
	needed := min(int64(len(line)), held)
	l.budget.Give(held - needed)
	return line, needed, nil
}

// takeLong takes what a long line may need of the budget.
func (l *lines) takeLong() (held int64, err error) {
	soon, stop := context.WithTimeout(l.open, LongFrame)
	defer stop()
	held, ok := l.budget.Take(soon, int64(l.limit))
	if !ok {
		return 0, &CloseError{Code: CloseTryAgain, Reason: "no memory for a long frame", Ours: true}
	}
	return held, nil
}

// torn says how reading ended, with what was read of a line.
func (l *lines) torn(err error, line []byte) error {
	if l.open.Err() != nil {
		return ErrClosed
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return fmt.Errorf("the last line has no newline: %w", io.ErrUnexpectedEOF)
	}
	return err
}

func (l *lines) Write(frame []byte, more bool) error {
	l.out = append(append(l.out, frame...), '\n')
	if more && len(l.out) < DefaultAllowance {
		return nil
	}
	_, err := l.conn.Write(l.out)
	if l.out = l.out[:0]; cap(l.out) > DefaultAllowance {
		l.out = nil
	}
	return err
}

func (l *lines) Short(only bool) { l.short = only }

func (l *lines) Close(int, string) error {
	var err error
	l.once.Do(func() {
		l.end()
		err = l.conn.Close()
	})
	return err
}
