package mcp

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A webExchange is one exchange that carries messages, or may: of a GET for events it is not known before the first one came. It
// implements exchange.Passage.
type webExchange struct {
	over         *OverHTTP
	asked        *exchange.Asked
	place        string
	messages     []Message // of a POST
	batch        bool
	conversation *webConversation // nil while it is not known
	opens        bool             // the request is the first of a conversation, which begins when the server answers as one of MCP does
	sse          bool             // the answers come on the GET of HTTP+SSE

	status    int
	session   string          // that the answer names
	answered  map[string]bool // ids of requests
	resumable bool            // the answer may go on in another exchange
	reader    answerReader    // nil where the answer holds no messages
	given     webReplay       // of a replay
	refusal   []byte          // the line that answers requests which are not on the tape; nil where nothing is asked
	between   exchange.Between
	stream    *webStream // of a replay: that of HTTP+SSE which this GET is; nil for none
}

// begin finds the conversation, and tells it what the client sent. What waits for that on a replay goes on then.
func (p *webExchange) begin() error {
	p.find()
	if p.conversation != nil && p.asked.Recorded != nil {
		p.given.prepare(p)
		p.conversation.live.answered(p)
		defer p.given.begin()
	}
	switch {
	case p.asked.Request.Method != http.MethodPost:
		return nil
	case p.sse:
		return p.sent()
	case p.conversation != nil:
		return p.tell()
	case p.asked.Refused != "":
		p.conversation = p.over.meant(p.asked.Request, p.place, p.begins(methodInitialize))
		return p.tell()
	}
	p.opens = true
	return nil
}

// find finds the conversation, where it is known.
func (p *webExchange) find() {
	h := p.over
	h.mu.Lock()
	defer h.mu.Unlock()
	known, endpoint := h.find(p.asked.Request, p.place)
	p.sse, p.conversation = endpoint, h.recorded(p.asked)
	if p.begins(methodInitialize) && !p.sse {
		return
	}
	p.conversation = cmp.Or(p.conversation, known)
	if p.conversation != nil && !p.begins(methodDiscover) { // it waits for no initialize
		h.waiting[p.place] = slices.DeleteFunc(h.waiting[p.place], func(w *webConversation) bool { return w == p.conversation })
	}
}

// begins reports whether the request is of a method that opens a conversation: initialize does whatever there is already, and behind
// server/discover a client may still begin with it.
func (p *webExchange) begins(method string) bool {
	return len(p.messages) > 0 && p.messages[0].Method == method
}

// Known implements exchange.Passage.
func (p *webExchange) Known() bool { return p.conversation != nil }

// tell gives what the client sent to the conversation. What is refused has its reason.
func (p *webExchange) tell() error {
	if err := p.conversation.Line(Client, p.asked.Request.Body, p.asked.Arrival); err != nil || p.asked.Refused == "" {
		return err
	}
	p.refusal = p.refused(func(m *Message) { p.conversation.Fault(Client, m.ID, p.asked.Refused) })
	return nil
}

// sent is tell of HTTP+SSE, where on a replay the stream may wait for the request.
func (p *webExchange) sent() error {
	if err := p.tell(); err != nil {
		return err
	}
	if s := p.conversation.sse.Load(); s != nil {
		return s.came()
	}
	return nil
}

// start begins the conversation that the request opens.
func (p *webExchange) start() error {
	p.conversation = p.over.begun(p.asked.Request, p.place, p.begins(methodInitialize))
	return p.tell()
}

// Head implements exchange.Passage.
func (p *webExchange) Head(status int, h http.Header) error {
	p.status, p.session = status, h.Get(sessionHeader)
	p.reader = readerOf(p.asked.Request.Method, h)
	if p.opens && status < 300 && p.reader != nil { // until the answer settles it
		if err := p.start(); err != nil {
			return err
		}
	}
	if p.conversation != nil && p.session != "" {
		p.over.mu.Lock()
		p.over.known[keyOfSession(p.place, p.session)] = p.conversation
		p.over.mu.Unlock()
	}
	p.given.head(p, h)
	return nil
}

// Chunk implements exchange.Passage.
func (p *webExchange) Chunk(ctx context.Context, b []byte, ended bool) ([][]byte, error) {
	if p.given.on {
		return p.given.chunk(ctx, p, b, ended)
	}
	if p.reader != nil {
		if err := p.reader.take(b, ended, func(u *unit) error { return p.unit(u, u.data()) }); err != nil {
			return nil, err
		}
	}
	return [][]byte{b}, nil
}

// unit takes one whole part of the answer, whose data is what the program gets.
func (p *webExchange) unit(u *unit, data []byte) error {
	if e := u.event; e != nil {
		p.resumable = p.resumable || e.id != ""
		if e.name == "endpoint" && p.asked.Request.Method == http.MethodGet {
			return p.endpoint(string(data))
		}
		if p.conversation == nil && !p.opens { // events of something else
			p.reader = nil
			return nil
		}
	}
	return p.say(data)
}

// endpoint begins a conversation of HTTP+SSE, whose messages go to a URL that may be relative.
func (p *webExchange) endpoint(ref string) error {
	base, err := url.Parse(p.asked.Request.URL)
	if err != nil {
		return nil
	}
	to, err := base.Parse(ref)
	if err != nil {
		return nil
	}
	h := p.over
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.conversation = h.recorded(p.asked); p.conversation == nil {
		p.conversation = h.open(p.asked.Request, nil)
	}
	h.known[keyOfEndpoint(to.String())] = p.conversation
	if p.asked.Recorded != nil {
		p.stream = &webStream{get: p, say: p.between}
		p.conversation.sse.Store(p.stream)
	}
	return nil
}

// say gives a line of the server to the conversation. What is no message, and an error that names no request, is none of its
// lines.
func (p *webExchange) say(line []byte) error {
	messages, _, err := Parse(line)
	if err != nil || !p.counts(messages) {
		return nil
	}
	if p.conversation == nil {
		if err := p.start(); err != nil {
			return err
		}
	}
	for i := range messages {
		if m := &messages[i]; m.IsAnswer() {
			p.settle(m)
		}
	}
	return p.conversation.Line(Server, line, p.asked.Arrival)
}

// counts reports whether messages are a line of the conversation: one that is not begun begins with an answer to its request.
func (p *webExchange) counts(messages []Message) bool {
	for i := range messages {
		m := &messages[i]
		if p.conversation != nil && (m.Method != "" || m.hasID()) || p.conversation == nil && m.IsAnswer() && p.asks(m.ID) {
			return true
		}
	}
	return false
}

// asks reports whether the request with that id is in the POST.
func (p *webExchange) asks(id []byte) bool {
	return slices.ContainsFunc(p.messages, func(m Message) bool { return m.IsRequest() && string(m.ID) == string(id) })
}

// settle notes an answer, and by that to the first request of a conversation how the next ones are to be found.
func (p *webExchange) settle(m *Message) {
	if p.answered == nil {
		p.answered = make(map[string]bool)
	}
	p.answered[string(m.ID)] = true
	if !p.opens {
		return
	}
	p.opens = false
	h := p.over
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.begins(methodDiscover) {
		h.waiting[p.place] = append(h.waiting[p.place], p.conversation)
	}
	if p.session == "" && (m.Error == nil || !p.begins(methodDiscover)) {
		h.known[p.place] = p.conversation
	}
}

// End implements exchange.Passage.
func (p *webExchange) End(errText string) (lane string, err error) {
	if p.reader != nil {
		err = p.reader.take(nil, true, func(u *unit) error { return p.unit(u, u.data()) })
	}
	if p.conversation == nil {
		return "", err
	}
	if p.asked.Request.Method == http.MethodDelete && p.status < 300 && p.status > 0 {
		p.conversation.endedBy(Client, false)
	}
	if err == nil && p.sse && p.asked.Refused != "" {
		err = p.refuse()
	}
	if err == nil && !p.elsewhere() {
		err = p.cut(why(p.status, errText))
	}
	if p.asked.Recorded != nil {
		return "", err
	}
	return p.conversation.lane(), err
}

// elsewhere reports whether what was not answered may be answered in another exchange.
func (p *webExchange) elsewhere() bool {
	return p.resumable || p.sse && p.status > 0 && p.status < 300
}

// cut says of the requests that got no answer why.
func (p *webExchange) cut(why string) error {
	for i := range p.messages {
		m := &p.messages[i]
		if !m.IsRequest() || p.answered[string(m.ID)] {
			continue
		}
		if err := p.conversation.Cut(Client, m.ID, why); err != nil {
			return err
		}
	}
	return nil
}

// why says why a request has no answer.
func why(status int, errText string) string {
	switch {
	case errText == tape.Cancelled:
		return cancelled
	case status >= 300:
		return "HTTP " + strconv.Itoa(status)
	}
	return serverEnded
}

// Between implements exchange.Passage.
func (p *webExchange) Between(say exchange.Between) { p.between = say }

// Passed implements exchange.Passage.
func (p *webExchange) Passed() { p.given.passed() }

// Close implements exchange.Passage.
func (p *webExchange) Close() {
	p.given.close()
	if p.stream != nil {
		p.stream.close()
	}
}

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
	return !slices.ContainsFunc(p.messages, func(m Message) bool { return m.Method != methodPing })
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
		var answer []byte
		if m.Method == methodPing {
			answer = emptyAnswer(m.ID)
		} else if c := known[i]; c != nil { // nil where it cannot be read
			answer, _ = p.over.book.message(c.answerPart(), &caller{id: m.ID}, p.over.reveal)
		}
		if answer == nil {
			fault(m)
			answer = errorAnswer(m.ID, notOnTape(m, p.asked.Refused))
		}
		answers = append(answers, answer)
	}
	return bytes.TrimSuffix(lineOf(answers, p.batch), []byte{'\n'})
}

// refuse gives the refusal on the stream of HTTP+SSE.
func (p *webExchange) refuse() error {
	s, line := p.conversation.sse.Load(), p.refusal
	if s == nil || line == nil {
		return nil
	}
	return s.tell(line)
}

// answers finds the recorded answers to those calls of a refused batch that are on the tape, by index into the messages. Only calls that
// came in a batch are meant, and were answered. Where none is lacking, what differs is how they came together, and nothing is taken.
func (p *webExchange) answers() []*recordedCall {
	none, player := make([]*recordedCall, len(p.messages)), p.conversation.player
	clean := p.over.log.Redact(Client, p.asked.Request.Body).Messages
	if len(clean) != len(p.messages) {
		return none
	}
	player.mu.Lock()
	defer player.mu.Unlock()
	found, lacks := slices.Clone(none), false
	for i := range clean {
		m := &clean[i]
		if !m.IsRequest() || m.Method == methodPing {
			continue
		}
		line, ok := player.Find(p.over.log.keyOf(m), 0, func(l *recordedLine) int {
			if !l.call.batched || l.call.answer == nil || slices.Contains(found, l.call) {
				return -1
			}
			return 0
		})
		if lacks = lacks || !ok; ok {
			found[i] = player.Lines()[line].Value.call
		}
	}
	if !lacks {
		return none
	}
	for _, c := range found {
		if c != nil {
			player.Came(c.line)
		}
	}
	return found
}
