package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Answer implements exchange.Passage. A call gets HTTP's 200 and a JSON-RPC error: clients give that to who called, by its message;
// after any other status of a POST some of them end the session. Of HTTP+SSE the error comes where all answers come, for nobody reads those
// of a POST.
func (p *passage) Answer() (*exchange.OwnAnswer, bool) {
	if p.asked.Refused == "" {
		return nil, false
	}
	if p.asked.Request.Method != http.MethodPost {
		if p.talk == nil && !marked(p.asked.Request.Header) {
			return nil, false
		}
		// What clients take for: no stream here, no session to end. How often they ask depends on the moment.
		return &exchange.OwnAnswer{
			Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {http.MethodPost}}, Passes: true,
		}, true
	}
	a := &exchange.OwnAnswer{Status: http.StatusAccepted, Header: make(http.Header), Passes: p.pings()}
	if line := p.refusal; line != nil && !p.sse {
		a.Status, a.Body = http.StatusOK, line
		a.Header.Set("Content-Type", typeJSON)
		a.Header.Set("Content-Length", strconv.Itoa(len(line)))
	}
	return a, true
}

// pings reports whether the request has nothing but pings.
func (p *passage) pings() bool {
	for i := range p.messages {
		if p.messages[i].Method != "ping" {
			return false
		}
	}
	return true
}

// refused is the line that answers requests which are not on the tape, nil where nothing is asked, and calls fault for each. A ping is
// answered, and so is what else is on the tape of a batch.
func (p *passage) refused(fault func(*Message)) []byte {
	known := make([]*batchedCall, len(p.messages))
	if p.batch && p.talk.was != nil && p.over.log != nil {
		known = p.answers()
	}
	var answers [][]byte
	for i := range p.messages {
		m := &p.messages[i]
		if !m.IsRequest() {
			continue
		}
		answer := p.answerTo(m, known[i])
		if answer == nil {
			fault(m)
			answer = errorAnswer(m.ID, notOnTape(m, p.asked.Refused))
		}
		answers = append(answers, answer)
	}
	return bytes.TrimSuffix(lineOf(answers, p.batch), []byte{'\n'})
}

// answerTo answers a ping, and a request that the tape holds as c; nil for any other.
func (p *passage) answerTo(m *Message, c *batchedCall) []byte {
	switch {
	case m.Method == "ping":
		return answerOf(m.ID, "result", []byte("{}"))
	case c != nil:
		return p.answerAgain(m, c)
	}
	return nil
}

// refuse gives the refusal on the stream of HTTP+SSE.
func (p *passage) refuse() error {
	s, line := p.talk.streaming(), p.refusal
	if s == nil || line == nil {
		return nil
	}
	return s.tell(line)
}

// batched are the calls of a recorded conversation that came in batches and were answered. HTTP matches a batch as a whole, as one
// request; where the tape lacks it for one of its calls, the others are answered from here.
type batched struct {
	mu    sync.Mutex
	calls map[bookKey][]*batchedCall // in recorded order
}

type batchedCall struct {
	exchange uint64 // arrival of the one that carried it
	place    uint64
	answer   *tape.Payload
	served   bool // guarded by batched.mu
}

// note takes an answered call of the client over. Which came in a batch is known once all are noted: settle follows.
func (b *batched) note(k *tape.MCPJSONRPC) {
	if k.Answered == 0 || k.Response == nil || Side(k.From) == Server || k.Method == "ping" {
		return
	}
	if b.calls == nil {
		b.calls = make(map[bookKey][]*batchedCall)
	}
	key := bookKey{k.Method, k.ParamsDigest}
	b.calls[key] = append(b.calls[key], &batchedCall{exchange: k.Exchange, place: k.Arrival, answer: k.Response})
}

// settle drops what came by itself.
func (b *batched) settle() {
	at := make(map[uint64]int)
	for _, list := range b.calls {
		for _, c := range list {
			at[c.place]++
		}
	}
	for key, list := range b.calls {
		kept := list[:0]
		for _, c := range list {
			if at[c.place] > 1 {
				kept = append(kept, c)
			}
		}
		if b.calls[key] = kept; len(kept) == 0 {
			delete(b.calls, key)
		}
	}
}

// came notes that a recorded exchange answers what it answered.
func (b *batched) came(exchange uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, list := range b.calls {
		for _, c := range list {
			c.served = c.served || c.exchange == exchange
		}
	}
}

// take returns for each key the next recorded call, nil for one that the tape lacks and for the zero key, which asks for nothing. Where it
// lacks none, what differs is how they came together, and nothing is taken.
func (b *batched) take(keys []bookKey) []*batchedCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, lacks := make([]*batchedCall, len(keys)), false
	for i, k := range keys {
		for _, c := range b.calls[k] {
			if !c.served {
				found[i], c.served = c, true
				break
			}
		}
		lacks = lacks || found[i] == nil && k != (bookKey{})
	}
	if lacks {
		return found
	}
	for i, c := range found {
		if c != nil {
			c.served = false
		}
		found[i] = nil
	}
	return found
}

// answers finds the recorded answers to those calls of a refused batch that are on the tape, by index into the messages.
func (p *passage) answers() []*batchedCall {
	clean := p.over.log.Redact(Client, p.asked.Request.Body).Messages
	if len(clean) != len(p.messages) {
		return make([]*batchedCall, len(p.messages))
	}
	keys := make([]bookKey, len(clean))
	for i := range clean {
		if m := &clean[i]; m.IsRequest() && m.Method != "ping" {
			keys[i] = bookKey{m.Method, p.over.log.Digest(m.Method, m.Params)}
		}
	}
	return p.talk.was.batched.take(keys)
}

// answerAgain is the recorded answer to a call, under the id that it has now; nil where it cannot be read.
func (p *passage) answerAgain(m *Message, c *batchedCall) []byte {
	was, ok := messageOf(c.answer, p.over.blobs)
	if !ok {
		return nil
	}
	kind := "result"
	if was.Error != nil {
		kind = "error"
	}
	value := was.value()
	if p.over.reveal != nil {
		value = p.over.reveal(value)
	}
	return answerOf(m.ID, kind, value)
}

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
