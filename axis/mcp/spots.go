package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// codeRefused is the code of the error that stands for an answer which is not on the tape.
const codeRefused = -32000

// answerOf is an answer, as a line without its end. kind is "result" or "error".
func answerOf(id json.RawMessage, kind string, value []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
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
	return edited(b, func(name string) []byte {
		switch {
		case name == spotID && (part.answer || part.ask != nil), name == spotSubscription, name == spotRequest && !part.answer:
			return who.id
		case name == spotToken:
			return who.token
		}
		return nil
	})
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
func spotsOf(message []byte) []spot {
	var s jsonscan.Scanner
	s.Reset(message)
	f := finder{s: &s}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			f.spot(spotID)
		case "params":
			f.params(spotToken, spotRequest)
		case "result":
			f.params()
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return nil
	}
	return f.spots
}

type finder struct {
	s     *jsonscan.Scanner
	spots []spot
}

// spot notes the value that comes next.
func (f *finder) spot(name string) {
	f.s.Peek()
	start := f.s.Offset()
	f.s.Skip()
	f.spots = append(f.spots, spot{name, start, f.s.Offset()})
}

// params looks through params, or a result, for what its members called names hold, and for a subscription.
func (f *finder) params(names ...string) {
	f.members(func(key string) {
		if key == "_meta" {
			f.members(func(key string) { f.spotIf(key == spotSubscription, key) })
			return
		}
		f.spotIf(slices.Contains(names, key), key)
	})
}

func (f *finder) spotIf(yes bool, name string) {
	if yes {
		f.spot(name)
		return
	}
	f.s.Skip()
}

// members shows the keys of the object that comes next; anything else is stepped over.
func (f *finder) members(member func(key string)) {
	if f.s.Peek() != '{' {
		f.s.Skip()
		return
	}
	for f.s.Begin('{'); f.s.More('}'); {
		member(string(f.s.Key()))
	}
}

// edited returns message with what in gives in the place of each spot; nil leaves one as it is. It never writes to message.
func edited(message []byte, in func(name string) []byte) []byte {
	var edits []edit
	for _, s := range spotsOf(message) {
		if v := in(s.name); v != nil {
			edits = append(edits, edit{s.start, s.end, v})
		}
	}
	return applyEdits(message, edits)
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
func tokenOf(params []byte) []byte {
	var s jsonscan.Scanner
	s.Reset(params)
	f := finder{s: &s}
	var token []byte
	f.members(func(key string) {
		if key != "_meta" {
			s.Skip()
			return
		}
		f.members(func(key string) {
			if key == spotToken {
				token = s.Raw()
				return
			}
			s.Skip()
		})
	})
	if s.End() != nil {
		return nil
	}
	return token
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
		for _, s := range spotsOf(m.Raw) {
			if now := own.named(m, s, all); now != "" {
				edits = append(edits, edit{base + s.start, base + s.end, []byte(now)})
			}
		}
	}
	return edits
}

// named is what stands in the place of a spot of a message of the server; "" where it stays as it is.
func (n *names) named(m *Message, s spot, all *names) string {
	was, own, others := string(m.Raw[s.start:s.end]), &n.ids, &all.ids
	switch {
	case s.name == spotID && !m.IsAnswer(): // the server's own
		return ""
	case s.name == spotRequest && !n.listens: // the same
		return ""
	case s.name == spotToken && m.Method != "notifications/progress":
		return ""
	case s.name == spotToken:
		own, others = &n.tokens, &all.tokens
	}
	now, known := own.Replayed(was)
	if !known {
		now, _ = others.Replayed(was)
	}
	if now == was {
		return ""
	}
	return now
}
