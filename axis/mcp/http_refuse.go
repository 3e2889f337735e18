package mcp

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// Answer implements exchange.Passage. A call gets HTTP's 200 and a JSON-RPC error: clients give that to who called, by its message;
// after any other status of a POST some of them end the session. Of HTTP+SSE the error comes where all answers come, for nobody reads those
// of a POST.
func (p *webExchange) Answer() (*exchange.OwnAnswer, bool) {
	if p.asked.Refused == "" {
		return nil, false
	}
	if p.asked.Request.Method != http.MethodPost {
		if p.conversation == nil && !marked(p.asked.Request.Header) {
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
func (p *webExchange) pings() bool {
	for i := range p.messages {
		if p.messages[i].Method != "ping" {
			return false
		}
	}
	return true
}

// refused is the line that answers requests which are not on the tape, nil where nothing is asked, and calls fault for each. A ping is
// answered, and so is what else is on the tape of a batch.
func (p *webExchange) refused(fault func(*Message)) []byte {
	known := make([]*recordedCall, len(p.messages))
	if p.batch && p.conversation.player != nil && p.over.log != nil {
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
func (p *webExchange) answerTo(m *Message, c *recordedCall) []byte {
	switch {
	case m.Method == "ping":
		return emptyAnswer(m.ID)
	case c != nil:
		return p.answerAgain(m, c)
	}
	return nil
}

// refuse gives the refusal on the stream of HTTP+SSE.
func (p *webExchange) refuse() error {
	s, line := p.conversation.sse.Load(), p.refusal
	if s == nil || line == nil {
		return nil
	}
	return s.tell(line)
}

// answers finds the recorded answers to those calls of a refused batch that are on the tape, by index into the messages.
func (p *webExchange) answers() []*recordedCall {
	clean := p.over.log.Redact(Client, p.asked.Request.Body).Messages
	if len(clean) != len(p.messages) {
		return make([]*recordedCall, len(p.messages))
	}
	keys := make([]requestKey, len(clean))
	for i := range clean {
		if m := &clean[i]; m.IsRequest() && m.Method != "ping" {
			keys[i] = requestKey{m.Method, p.over.log.Digest(m.Method, m.Params)}
		}
	}
	return p.conversation.player.batched(keys)
}

// answerAgain is the recorded answer to a call, under the id that it has now; nil where it cannot be read.
func (p *webExchange) answerAgain(m *Message, c *recordedCall) []byte {
	b, err := p.over.book.message(c.answerPart(), &caller{id: m.ID}, p.over.reveal)
	if err != nil {
		return nil
	}
	return b
}
