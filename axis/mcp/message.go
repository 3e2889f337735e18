package mcp

import (
	"encoding/json"
	"errors"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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
