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
	if line := p.refusal(); line != nil && !p.sse {
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

// refusal is the line that answers requests which are not on the tape, nil where nothing is asked; a ping is answered.
func (p *passage) refusal() []byte {
	var answers [][]byte
	for i := range p.messages {
		switch m := &p.messages[i]; {
		case !m.IsRequest():
		case m.Method == "ping":
			answers = append(answers, answerOf(m.ID, "result", []byte("{}")))
		default:
			answers = append(answers, errorAnswer(m.ID, refusedAs+m.Method+"; "+p.asked.Refused))
		}
	}
	return bytes.TrimSuffix(lineOf(answers, p.batch), []byte{'\n'})
}

// refuse gives the refusal on the stream of HTTP+SSE.
func (p *passage) refuse() error {
	s, line := p.talk.streaming(), p.refusal()
	if s == nil || line == nil {
		return nil
	}
	return s.tell(line)
}
