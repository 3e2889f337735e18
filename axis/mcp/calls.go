package mcp

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The reasons that records have.
const (
	cancelled  = "cancelled"
	answerLost = "the answer was too long to be kept"
)

// An openCall is a request that has no answer yet.
type openCall struct {
	from   Side
	id     string
	record *tape.MCPJSONRPC // but for its answer
	began  time.Time
	cut    time.Time // when it was cancelled; zero for never
	fault  string
	lost   bool // a line came that is not kept, which may be its answer
}

// openCalls are the open requests of a conversation, in the order in which they came. A side may use an id twice at once, which none
// should: the oldest is answered first.
type openCalls []*openCall

// canonicalID is an id in one form.
func canonicalID(id json.RawMessage) string {
	if b, err := canonjson.Canonical(id); err == nil {
		id = b
	}
	return string(id)
}

func (c openCalls) index(from Side, id json.RawMessage) int {
	name := canonicalID(id)
	return slices.IndexFunc(c, func(k *openCall) bool { return k.from == from && k.id == name })
}

func (c openCalls) find(from Side, id json.RawMessage) *openCall {
	if i := c.index(from, id); i >= 0 {
		return c[i]
	}
	return nil
}

func (c *openCalls) take(from Side, id json.RawMessage) *openCall {
	i := c.index(from, id)
	if i < 0 {
		return nil
	}
	k := (*c)[i]
	*c = slices.Delete(*c, i, i+1)
	return k
}

// lose notes that a line which is not kept may have answered any of the requests of a side.
func (c openCalls) lose(from Side) {
	for _, k := range c {
		k.lost = k.lost || k.from == from
	}
}

// has reports whether a request of a method is open.
func (c openCalls) has(methods ...string) bool {
	return slices.ContainsFunc(c, func(k *openCall) bool { return slices.Contains(methods, k.record.Method) })
}

// ask takes a request.
func (c *Conversation) ask(from Side, m *kept, via uint64) error {
	c.naming.asked(m.Message)
	c.calls = append(c.calls, &openCall{from: from, id: canonicalID(m.ID), record: c.record(from, m, via), began: time.Now()})
	return nil
}

// tell takes a notification. That a request is cancelled shows only where no answer comes: one may be on its way.
func (c *Conversation) tell(from Side, m *kept, via uint64) error {
	if m.Method == "notifications/cancelled" {
		if k := c.calls.find(from, member(m.Params, "requestId")); k != nil && k.cut.IsZero() {
			k.cut = time.Now()
		}
	}
	return c.write(c.record(from, m, via), nil)
}

// answer takes the answer of a call.
func (c *Conversation) answer(k *openCall, m *kept, via uint64) (err error) {
	r := k.record
	r.Response, r.ResponseDigest, r.ResultDigest = m.payload, m.payload.Hash, m.digest
	r.LatencyMS, r.Answered, r.AnswerExchange = time.Since(k.began).Milliseconds(), c.arrival, via
	r.Error = k.fault
	if k.from == Client && !c.naming.done() {
		if err := c.learnName(k, m.Message); err != nil {
			return err
		}
	}
	return c.write(r, nil)
}

// unanswered writes the record of a call that gets no answer.
func (c *Conversation) unanswered(k *openCall, why string) error {
	end := time.Now()
	if !k.cut.IsZero() {
		end, why = k.cut, cancelled
	}
	switch {
	case k.fault != "":
		why = k.fault
	case k.lost && k.cut.IsZero():
		why = answerLost
	}
	k.record.LatencyMS, k.record.Error = end.Sub(k.began).Milliseconds(), why
	return c.write(k.record, nil)
}

// noBytes is the digest of what is not there.
var noBytes = cas.Sum(nil)

// kept is a message with what takes time to make of it.
type kept struct {
	*Message
	payload *tape.Payload
	digest  cas.Digest // of the params, the result or the error
}

// record is that of a request or a notification, without an answer.
func (c *Conversation) record(from Side, m *kept, via uint64) *tape.MCPJSONRPC {
	method, _ := tape.SafeString(m.Method)
	return &tape.MCPJSONRPC{
		Method: method, RequestDigest: m.payload.Hash, ResponseDigest: noBytes, Request: m.payload, From: string(from),
		Conversation: c.number, Transport: c.opened.Transport, Arrival: c.arrival, ParamsDigest: m.digest, Exchange: via,
	}
}

// text takes text at the place of the line that came last.
func (c *Conversation) text(from Side, b []byte) error {
	for _, t := range c.texts {
		if t.from != from {
			continue
		}
		t.add(b, c.arrival)
		if t.full() {
			return c.writeTexts((*text).lines)
		}
	}
	return nil
}

// writeTexts writes what take gives of each text, by place.
func (c *Conversation) writeTexts(take func(*text) ([]byte, uint64)) error {
	var all []*tape.MCPText
	for _, t := range c.texts {
		b, at := take(t)
		if len(b) == 0 {
			continue
		}
		p, err := c.log.rec.Payload(b)
		if err != nil {
			return err
		}
		all = append(all, &tape.MCPText{Conversation: c.number, From: string(t.from), Arrival: at, Payload: p})
	}
	slices.SortStableFunc(all, func(a, b *tape.MCPText) int { return int(a.Arrival) - int(b.Arrival) })
	for _, k := range all {
		if err := c.write(k, nil); err != nil {
			return err
		}
	}
	return nil
}

// closing is the record of the end.
func (c *Conversation) closing(e *Ended) *tape.MCPClose {
	k := &tape.MCPClose{Conversation: c.number, Arrival: c.arrival, Signal: e.Signal, Error: c.lost, By: string(c.by)}
	if e.Exited {
		code := int64(e.ExitCode)
		k.ExitCode = &code
	}
	return k
}
