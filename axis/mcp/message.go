package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
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

// codeRefused is the code of the error that stands for an answer which is not on the tape.
const codeRefused = -32000

// messageBegins is what stands before the id of a message.
const messageBegins = `{"jsonrpc":"2.0","id":`

// MessageOf reads the one message of a payload.
func MessageOf(p *tape.Payload, store cas.Store) (*Message, error) {
	if p == nil || !p.Inline && store == nil {
		return nil, errNotThere
	}
	b, err := p.Bytes(store)
	if err != nil {
		return nil, err
	}
	messages, _, err := Parse(b)
	if err == nil && len(messages) != 1 {
		err = fmt.Errorf("%d messages stand where one should", len(messages))
	}
	if err != nil {
		return nil, err
	}
	return &messages[0], nil
}

// errNotThere is the error of a message that stands in no payload.
var errNotThere = errors.New("the tape does not hold the message")

// messageOf is MessageOf where it does not matter why there is none.
func messageOf(p *tape.Payload, store cas.Store) (*Message, bool) {
	m, err := MessageOf(p, store)
	return m, err == nil
}

// Subject is what a request is for: the tool, the prompt or the resource that its params name; "" for none.
func Subject(params []byte) string {
	v, err := canonjson.Parse(params)
	if err != nil {
		return ""
	}
	for _, key := range []string{"name", "uri"} {
		if name, ok := v.Get(key); ok {
			return name.Text()
		}
	}
	return ""
}

// AnswerTo is m as the answer to the request of an id, without a line end.
func (m *Message) AnswerTo(id json.RawMessage) []byte {
	if m.Error != nil {
		return answerOf(id, "error", m.Error)
	}
	return answerOf(id, "result", m.Result)
}

// answerOf is an answer, as a line without its end. kind is "result" or "error".
func answerOf(id json.RawMessage, kind string, value []byte) []byte {
	b := append([]byte(messageBegins), id...)
	b = append(append(append(b, `,"`...), kind...), `":`...)
	return append(append(b, value...), '}')
}

// emptyAnswer answers what asks for nothing, as a ping.
func emptyAnswer(id json.RawMessage) []byte { return answerOf(id, "result", []byte("{}")) }

// errorAnswer answers with an error.
func errorAnswer(id json.RawMessage, message string) []byte {
	return errorWith(id, codeRefused, message)
}

func errorWith(id json.RawMessage, code int, message string) []byte {
	b := fmt.Appendf(nil, `{"code":%d,"message":`, code)
	return answerOf(id, "error", append(jsonscan.AppendText(b, message), '}'))
}

// lineOf is one line of messages, with its end; nil for none.
func lineOf(messages [][]byte, batch bool) []byte {
	switch {
	case len(messages) == 0:
		return nil
	case batch || len(messages) > 1:
		return append(append([]byte{'['}, bytes.Join(messages, []byte{','})...), ']', '\n')
	}
	return append(bytes.Clone(messages[0]), '\n')
}

// renamed gives a message of the tape the names of this run: its id, the token of its progress. Nil is for progress of a request that
// wants none.
func renamed(b []byte, part *recordedPart, who *caller) []byte {
	switch {
	case part.call == nil && (part.ask == nil || who.id == nil):
		return b
	case part.name == spotToken && len(who.token) == 0:
		return nil
	}
	return applyEdits(b, appendEdits(nil, b, 0, func(s spot) []byte {
		switch {
		case s.name == spotID && (part.answer || part.ask != nil), s.name == spotSubscription, s.name == spotRequest && !part.answer:
			return who.id
		case s.name == spotToken:
			return who.token
		}
		return nil
	}))
}

// A spot is a place in a message where a name that is made up anew in each run stands.
type spot struct {
	name       string
	start, end int
}

// The names of spots.
const (
	spotID           = "id"            // of the message itself
	spotToken        = "progressToken" // of a progress notification
	spotRequest      = "requestId"     // of a cancellation
	spotSubscription = "io.modelcontextprotocol/subscriptionId"
)

// spotsOf finds the spots of a message, in their order. Of what is no message there are none.
func spotsOf(message []byte) (spots []spot) {
	var s jsonscan.Scanner
	s.Reset(message)
	note := func(name string) bool {
		s.Peek()
		start := s.Offset()
		s.Skip()
		spots = append(spots, spot{name, start, s.Offset()})
		return true
	}
	members(&s, func(outer []byte) bool {
		inParams := string(outer) == "params"
		if string(outer) == "id" {
			return note(spotID)
		}
		return (inParams || string(outer) == "result") && members(&s, func(key []byte) bool {
			switch string(key) {
			case "_meta":
				return members(&s, func(key []byte) bool { return string(key) == spotSubscription && note(spotSubscription) })
			case spotToken:
				return inParams && note(spotToken)
			case spotRequest:
				return inParams && note(spotRequest)
			}
			return false
		})
	})
	if s.End() != nil {
		return nil
	}
	return spots
}

// members shows the keys of the object that comes next to f, which reads the value, or does not and says so. It reports whether it has
// read that: anything else than an object it leaves.
func members(s *jsonscan.Scanner, f func(key []byte) (read bool)) bool {
	if s.Peek() != '{' {
		return false
	}
	for s.Begin('{'); s.More('}'); {
		if !f(s.Key()) {
			s.Skip()
		}
	}
	return true
}

// member returns the value of a member of an object, the last of that name; nil for none.
func member(object json.RawMessage, name string) (value json.RawMessage) {
	var s jsonscan.Scanner
	s.Reset(object)
	members(&s, func(key []byte) bool {
		if string(key) != name {
			return false
		}
		value = s.Raw()
		return true
	})
	return value
}

// str returns the text of a JSON string; "" where it is none.
func str(value json.RawMessage) string {
	var s jsonscan.Scanner
	s.Reset(value)
	if s.Peek() != '"' {
		return ""
	}
	return s.Text()
}

// appendEdits appends what name gives in the place of each spot of a message, which stands at base; nil leaves one as it is.
func appendEdits(edits []edit, message []byte, base int, name func(s spot) []byte) []edit {
	for _, s := range spotsOf(message) {
		if v := name(s); v != nil {
			edits = append(edits, edit{base + s.start, base + s.end, v})
		}
	}
	return edits
}

// An edit puts text in the place of the bytes [start, end).
type edit struct {
	start, end int
	text       []byte
}

// applyEdits returns b with edits, which are sorted. It never writes to b.
func applyEdits(b []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return b
	}
	more := 0
	for _, c := range edits {
		more += len(c.text)
	}
	out := make([]byte, 0, len(b)+more)
	done := 0
	for _, c := range edits {
		out = append(append(out, b[done:c.start]...), c.text...)
		done = c.end
	}
	return append(out, b[done:]...)
}

// tokenOf is the progress token that a request gives for its progress; nil for none.
func tokenOf(params json.RawMessage) json.RawMessage {
	return member(member(params, "_meta"), spotToken)
}

// names say what an id and a progress token of the recording are called on the replay, as JSON stands on the wire.
type names struct {
	ids, tokens map[string]string // by the recorded one
	changed     bool              // one of them has another name
	listens     bool              // a request was subscriptions/listen, whose end the server tells by its id
}

// learn notes that recorded requests of the client were answered to those of this run.
func (n *names) learn(was, now []Message) {
	if len(was) != len(now) {
		return
	}
	for i := range was {
		if was[i].IsRequest() && now[i].IsRequest() {
			n.note(&n.ids, was[i].ID, now[i].ID)
			n.listens = n.listens || now[i].Method == methodListen
		}
		n.note(&n.tokens, tokenOf(was[i].Params), tokenOf(now[i].Params))
	}
}

func (n *names) note(to *map[string]string, was, now []byte) {
	if was == nil || now == nil {
		return
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[string(was)] = string(now)
	n.changed = n.changed || !bytes.Equal(was, now)
}

// editsOf lists where a line of the server, one message or a batch, says another name than it has on the replay, in order. own goes
// before all.
func editsOf(line []byte, own, all *names) (edits []edit) {
	messages, _, err := Parse(line)
	if err != nil {
		return nil
	}
	from := 0
	for i := range messages {
		m := &messages[i]
		base := from + bytes.Index(line[from:], m.Raw) // messages share the line's memory, and stand in order
		from = base + len(m.Raw)
		edits = appendEdits(edits, m.Raw, base, func(s spot) []byte { return own.named(m, s, all) })
	}
	return edits
}

// named is what stands in the place of a spot of a message of the server; nil where it stays as it is.
func (n *names) named(m *Message, s spot, all *names) []byte {
	own, others := n.ids, all.ids
	switch {
	case s.name == spotID && !m.IsAnswer(), s.name == spotRequest && !n.listens: // the server's own
		return nil
	case s.name == spotToken && m.Method != "notifications/progress":
		return nil
	case s.name == spotToken:
		own, others = n.tokens, all.tokens
	}
	was := string(m.Raw[s.start:s.end])
	if now := cmp.Or(own[was], others[was]); now != "" && now != was {
		return []byte(now)
	}
	return nil
}
