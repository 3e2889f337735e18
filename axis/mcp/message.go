package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Side says whose line it is.
type Side string

// The sides of a conversation. The client is the program that is recorded; either side may ask the other.
const (
	Client Side = "client"
	Server Side = "server"
)

// Other returns the side that is not s.
func (s Side) Other() Side {
	if s == Client {
		return Server
	}
	return Client
}

// A Message is one JSON-RPC 2.0 message as it stood on the wire: nothing of it is decoded but its method. What is absent is nil;
// a null stands as "null".
type Message struct {
	ID     json.RawMessage // of a request, and of its answer
	Method string          // "" of an answer
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage
	Raw    []byte // the whole message, without white space around it
}

// IsRequest reports whether m asks for an answer. A null for an id asks for none: no peer of MCP answers it.
func (m *Message) IsRequest() bool { return m.Method != "" && m.hasID() }

// IsNotification reports whether m tells something and wants no answer.
func (m *Message) IsNotification() bool { return m.Method != "" && !m.hasID() }

// IsAnswer reports whether m answers a request.
func (m *Message) IsAnswer() bool { return m.Method == "" }

// value is what a message is about: its params, or the result or the error that it answers.
func (m *Message) value() json.RawMessage {
	switch {
	case m.Method != "":
		return m.Params
	case m.Result != nil:
		return m.Result
	}
	return m.Error
}

func (m *Message) hasID() bool { return len(m.ID) > 0 && m.ID[0] != 'n' }

// errNoMessage is the error of JSON that is no message.
var errNoMessage = errors.New("no JSON-RPC message: want an object with \"jsonrpc\":\"2.0\" and a method, a result or an error")

// Parse reads a line: one message, or a batch of them in a list, which may be empty. A line end and other white space around it do
// not matter. A line of which any part is no message of JSON-RPC 2.0 is an error, and messages are nil. The messages share the
// line's memory. Of a key that stands twice the last counts, as it does for who reads it.
func Parse(line []byte) (messages []Message, batch bool, err error) {
	var s jsonscan.Scanner
	s.Reset(line)
	if s.Peek() == '[' {
		batch = true
		for s.Begin('['); s.More(']'); {
			messages = append(messages, readMessage(&s))
		}
	} else {
		messages = append(messages, readMessage(&s))
	}
	if err := s.End(); err != nil {
		return nil, batch, err
	}
	return messages, batch, nil
}

// readMessage reads the message that the scanner stands before, or fails there.
func readMessage(s *jsonscan.Scanner) (m Message) {
	s.Peek()
	start, version := s.Offset(), false
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "jsonrpc":
			version = s.Peek() == '"' && s.Text() == "2.0"
		case "id":
			m.ID = s.Raw()
		case "method":
			if s.Peek() != '"' {
				s.Wrap(errNoMessage)
				return m
			}
			m.Method = s.Text()
		case "params":
			m.Params = s.Raw()
		case "result":
			m.Result = s.Raw()
		case "error":
			m.Error = s.Raw()
		default:
			s.Skip()
		}
	}
	if s.Err() == nil {
		m.Raw = s.Since(start)
		if !version || m.Method == "" && m.Result == nil && m.Error == nil {
			s.Wrap(errNoMessage)
		}
	}
	return m
}

// MaxLine is the longest line, in bytes with its end, that is kept: a longer one passes, and the end of its conversation says that it is not
// on the tape.
const MaxLine = 64 << 20

// keepLine is the largest buffer, in bytes, that waits for the next line.
const keepLine = 1 << 20

// lines cuts what passes into lines, wherever it is cut into reads.
type lines struct {
	part  []byte // of a line that has not ended
	lost  int64  // bytes of a line that is too long; 0 for none
	limit int
}

// A cut is a line that has ended, or one that was too long.
type cut struct {
	line []byte // with its end; valid until the next call
	lost int64  // its length where it is not kept
}

// next takes the beginning of b that belongs to the line that has not ended, and returns what is behind it. ok is false where the line
// does not end in b.
func (l *lines) next(b []byte) (c cut, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		l.add(b)
		return cut{}, nil, false
	}
	head, rest := b[:end+1], b[end+1:]
	if len(l.part) == 0 && l.lost == 0 && len(head) <= l.limit {
		return cut{line: head}, rest, true
	}
	l.add(head)
	return l.end(), rest, true
}

// in gives the lines that end in b, each with where its last part begins there.
func (l *lines) in(b []byte) iter.Seq2[int, cut] {
	return func(yield func(int, cut) bool) {
		for rest := b; len(rest) > 0; {
			at := len(b) - len(rest)
			c, behind, ok := l.next(rest)
			if rest = behind; !ok || !yield(at, c) {
				return
			}
		}
	}
}

// add takes a part of a line.
func (l *lines) add(b []byte) {
	if l.lost > 0 || len(l.part)+len(b) > l.limit {
		l.lost += int64(len(l.part) + len(b))
		l.part = nil
		return
	}
	l.part = append(l.part, b...)
}

// end returns what came of a line so far; what follows is another.
func (l *lines) end() cut {
	c := cut{l.part, l.lost}
	l.part, l.lost = l.part[:0], 0
	if cap(l.part) > keepLine {
		l.part = nil
	}
	return c
}

// A Checker holds the records of a tape, given in order, to what a Log writes: a conversation begins with its mcp_open, once, and nothing
// of it comes behind its mcp_close. Calls of other producers have no conversation. The zero value is ready.
type Checker struct {
	ended map[uint64]bool // conversations that have begun
}

// Check takes the next record. An error says what does not fit; the record counts as read all the same.
func (c *Checker) Check(k tape.Kind) error {
	switch k := k.(type) {
	case *tape.MCPOpen:
		_, begun := c.ended[k.Conversation]
		if c.ended == nil {
			c.ended = make(map[uint64]bool)
		}
		c.ended[k.Conversation] = false
		switch {
		case k.Conversation == 0:
			return fmt.Errorf("an mcp_open has no conversation")
		case begun:
			return fmt.Errorf("conversation %d begins twice", k.Conversation)
		}
	case *tape.MCPText:
		return c.within(k.Name(), k.Conversation)
	case *tape.MCPClose:
		err := c.within(k.Name(), k.Conversation)
		if err == nil {
			c.ended[k.Conversation] = true
		}
		return err
	case *tape.MCPJSONRPC:
		if k.Conversation != 0 {
			return c.within(k.Name(), k.Conversation)
		}
	}
	return nil
}

func (c *Checker) within(kind string, conversation uint64) error {
	switch ended, begun := c.ended[conversation]; {
	case !begun:
		return fmt.Errorf("an %s belongs to conversation %d, which has not begun", kind, conversation)
	case ended:
		return fmt.Errorf("an %s belongs to conversation %d, which has ended", kind, conversation)
	}
	return nil
}
