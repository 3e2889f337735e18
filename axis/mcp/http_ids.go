package mcp

import (
	"bytes"
	"encoding/json"
)

// webNames says what an id and a progress token of the recording are called on the replay. The keys are JSON as it stands on the wire.
type webNames struct {
	ids, tokens map[string]json.RawMessage
	changed     bool // one of them has another name
	listens     bool // a request was subscriptions/listen, whose end the server tells by its id
}

// learn notes that a recorded request of the client was answered to one of this run.
func (n *webNames) learn(was, now *Message) {
	if was.IsRequest() && now.IsRequest() {
		n.note(&n.ids, was.ID, now.ID)
		n.listens = n.listens || now.Method == "subscriptions/listen"
	}
	n.note(&n.tokens, tokenOf(was.Params), tokenOf(now.Params))
}

func (n *webNames) note(to *map[string]json.RawMessage, was, now json.RawMessage) {
	if was == nil || now == nil {
		return
	}
	if *to == nil {
		*to = make(map[string]json.RawMessage)
	}
	(*to)[string(was)] = bytes.Clone(now)
	n.changed = n.changed || !bytes.Equal(was, now)
}

// add takes over what other knows.
func (n *webNames) add(other *webNames) {
	for was, now := range other.ids {
		n.note(&n.ids, json.RawMessage(was), now)
	}
	for was, now := range other.tokens {
		n.note(&n.tokens, json.RawMessage(was), now)
	}
}

// editsOf lists where a line of the server, one message or a batch, says another name than it has on the replay, in order. own goes
// before all: a request's own answer is meant, where the conversation knows two of one id.
func editsOf(line []byte, own, all *webNames) (edits []edit) {
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
			if now := own.named(m, s, all); now != nil {
				edits = append(edits, edit{base + s.start, base + s.end, now})
			}
		}
	}
	return edits
}

// named is what stands in the place of a spot of a message of the server; nil where it stays as it is.
func (n *webNames) named(m *Message, s spot, all *webNames) json.RawMessage {
	was := string(m.Raw[s.start:s.end])
	of := func(n *webNames) map[string]json.RawMessage { return n.ids }
	switch {
	case s.name == spotID && !m.IsAnswer(): // the server's own
		return nil
	case s.name == spotRequest && !n.listens: // the same
		return nil
	case s.name == spotToken && m.Method != "notifications/progress":
		return nil
	case s.name == spotToken:
		of = func(n *webNames) map[string]json.RawMessage { return n.tokens }
	}
	now, ok := of(n)[was]
	if !ok {
		now = of(all)[was]
	}
	if string(now) == was {
		return nil
	}
	return now
}
