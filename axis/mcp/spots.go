package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// codeRefused is the code of the error that stands for an answer which is not on the tape.
const codeRefused = -32000

// messageBegins is what stands before the id of a message.
const messageBegins = `{"jsonrpc":"2.0","id":`

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
	ids, tokens lane.Names
	changed     bool // one of them has another name
	listens     bool // a request was subscriptions/listen, whose end the server tells by its id
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

func (n *names) note(to *lane.Names, was, now []byte) {
	if was == nil || now == nil {
		return
	}
	to.Learn([]string{string(was)}, []string{string(now)}, true)
	n.changed = n.changed || !bytes.Equal(was, now)
}

// knows reports whether a request of that recorded id has come.
func (n *names) knows(id []byte) bool {
	_, known := n.ids.Replayed(string(id))
	return known
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
	was, own, others := string(m.Raw[s.start:s.end]), &n.ids, &all.ids
	switch {
	case s.name == spotID && !m.IsAnswer(), s.name == spotRequest && !n.listens: // the server's own
		return nil
	case s.name == spotToken && m.Method != "notifications/progress":
		return nil
	case s.name == spotToken:
		own, others = &n.tokens, &all.tokens
	}
	now, known := own.Replayed(was)
	if !known {
		now, _ = others.Replayed(was)
	}
	if now == was || now == "" {
		return nil
	}
	return []byte(now)
}
