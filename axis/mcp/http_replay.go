package mcp

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A webReplay gives a recorded answer: each line in its place, with the ids of this run.
type webReplay struct {
	on   bool
	name names // of the requests that this answer answers
	far  bool  // the lines answer requests of other exchanges: a GET

	player  *webPlayer // nil where nothing is known of the conversation
	lines   *carried
	at      uint64 // arrival of the recorded exchange
	next    int    // of lines.server
	saying  []int  // lines that Chunk returned
	ends    int    // how far the script has to be before the answer ends; 0 for any
	rename  bool   // what comes is held until it is whole
	held    []byte
	begun   bool // the first bytes have passed
	closing bool
	spliced bool // what is due has been waited for
}

// prepare notes what the request is called now.
func (g *webReplay) prepare(p *webExchange) {
	rec := p.asked.Recorded
	g.on, g.at, g.far = true, rec.Arrival, p.asked.Request.Method == http.MethodGet
	was := p.recordedMessages()
	g.name.learn(was, p.messages)
	p.conversation.learn(was, p.messages)
	if g.player = p.conversation.player; g.player == nil {
		return
	}
	if g.lines = g.player.transcript.carried[rec.Arrival]; g.lines == nil {
		g.lines = new(carried)
	}
	if g.far {
		g.ends = g.player.transcript.recordedBefore(rec.Seq)
	}
}

// begin notes that the request has come.
func (g *webReplay) begin() {
	if g.player != nil {
		g.player.begin(g.at, g.lines)
	}
}

// recordedMessages are those of the recorded request; nil for what is not read.
func (p *webExchange) recordedMessages() []Message {
	x := p.asked.Recorded.Exchange
	if len(p.messages) == 0 || x.RequestPayload == nil || p.over.book == nil {
		return nil
	}
	body, err := x.RequestPayload.Bytes(p.over.book.store)
	if err != nil {
		return nil // whoever gives the answer finds out
	}
	if body, err = exchange.Decode(exchange.HeaderOf(x.RequestHeaders).Get("Content-Encoding"), body, maxUnit); err != nil {
		return nil
	}
	was, _, _ := Parse(body)
	return was
}

// head prepares the answer. Where other ids are put in, nobody knows how long it is.
func (g *webReplay) head(p *webExchange, h http.Header) {
	if !g.on || p.reader == nil {
		return
	}
	if _, packed := p.reader.(*packedReader); packed {
		g.rename = g.name.changed
		if g.rename {
			h.Del("Content-Encoding")
		}
	} else {
		g.rename = g.far || g.name.changed
	}
	if g.rename {
		h.Del("Content-Length")
	}
}

// chunk returns what the program gets of a chunk: b itself once all lines in it are due, or where other names stand in it what is whole
// by now.
func (g *webReplay) chunk(ctx context.Context, p *webExchange, b []byte, ended bool) ([][]byte, error) {
	if p.reader == nil {
		return [][]byte{b}, g.atEnd(ctx, ended)
	}
	if _, isJSON := p.reader.(*jsonReader); isJSON && !g.begun {
		if err := g.await(ctx); err != nil {
			return nil, err
		}
	}
	g.begun = true
	_, packed := p.reader.(*packedReader)
	var whole []byte
	if g.rename {
		g.held = append(g.held, b...)
	}
	err := p.reader.take(b, ended, func(u *unit) error {
		if err := g.due(ctx, u); err != nil {
			return err
		}
		if !g.rename {
			return p.unit(u, u.data())
		}
		n := len(u.raw)
		if packed {
			n = len(g.held)
		}
		g.held = g.held[n:]
		if p.stream != nil && p.stream.hold(u) {
			return nil
		}
		raw, line := u.edited(g.edits(p, u))
		whole = append(whole, raw...)
		return p.unit(u, line)
	})
	switch {
	case err != nil:
		return nil, err
	case !g.rename:
		return [][]byte{b}, g.atEnd(ctx, ended)
	case ended || p.reader == nil || p.reader.idle():
		whole, g.held = append(whole, g.held...), nil
	}
	if len(whole) == 0 {
		return nil, g.atEnd(ctx, ended)
	}
	return [][]byte{whole}, g.atEnd(ctx, ended)
}

// edits are what a unit of the recording says otherwise on this run.
func (g *webReplay) edits(p *webExchange, u *unit) []edit {
	data := u.data()
	if len(data) == 0 || u.event != nil && u.event.name == "endpoint" {
		return nil
	}
	return p.conversation.edits(data, &g.name)
}

// due waits until a unit is due.
func (g *webReplay) due(ctx context.Context, u *unit) error {
	if _, _, err := Parse(u.data()); err != nil || u.event == nil || g.spliced {
		return nil
	}
	return g.await(ctx)
}

// await waits until the next line is due.
func (g *webReplay) await(ctx context.Context) error {
	if g.player == nil || g.next >= len(g.lines.server) {
		return nil
	}
	line := g.lines.server[g.next]
	g.next++
	g.saying = append(g.saying, line)
	return g.player.await(ctx, line, g.at)
}

// atEnd holds the end of a stream, for as long as it takes, until what had come when it ended has come.
func (g *webReplay) atEnd(ctx context.Context, ended bool) error {
	if !ended || g.ends == 0 {
		return nil
	}
	return g.player.AwaitAll(ctx, g.ends, g.at)
}

// passed notes that the program got what chunk returned.
func (g *webReplay) passed() {
	for _, line := range g.saying {
		g.player.passed(line)
	}
	g.saying = g.saying[:0]
}

// close notes that no more comes.
func (g *webReplay) close() {
	if g.player != nil && !g.closing {
		g.closing = true
		g.player.Close(g.at)
		g.player.Said(g.lines.server...)
	}
}

// A webPlayer plays a conversation over HTTP. Each exchange brings its own lines, at their places.
type webPlayer struct {
	*lane.Player[requestKey, *recordedLine]
	transcript *transcript

	mu     sync.Mutex // guards what follows
	told   time.Time  // when a line of the server passed last that is no answer
	toldMS int64      // when it had, in ms of the recording
}

func newWebPlayer(t *transcript, hold time.Duration) *webPlayer {
	o := &lane.PlayerOptions[requestKey, *recordedLine]{Slack: hold, Key: (*recordedLine).matched}
	return &webPlayer{Player: lane.NewPlayer(t.script, o), transcript: t}
}

// begin notes that a recorded exchange is under way again: the lines of the client in it have come.
func (p *webPlayer) begin(exchange uint64, c *carried) {
	p.Open(exchange)
	for _, line := range c.client {
		p.Came(line)
	}
}

// passed notes that a line has been passed on.
func (p *webPlayer) passed(line int) {
	p.Said(line)
	if l := &p.Lines()[line]; !l.Value.answers() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told, p.toldMS = time.Now(), l.MS
	}
}

// await waits until a line is due, which an exchange carries: what that carries before it passes before it anyway. The error is ctx's.
func (p *webPlayer) await(ctx context.Context, line int, exchange uint64) error {
	l := &p.Lines()[line]
	if err := p.Await(ctx, line, exchange, l.MS); err != nil || !l.Value.answers() {
		return err
	}
	return lane.Pause(ctx, nil, p.unread(l.MS))
}

// unread is how long an answer is still held because of what passed just before: some times as long as it came after that, for the
// rest of the machine does not go faster.
func (p *webPlayer) unread(ms int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told.IsZero() {
		return 0
	}
	return min(reading, 5*time.Millisecond+4*lane.Between(p.toldMS, ms)) - time.Since(p.told)
}

// learn takes over what recorded requests are called now.
func (t *webConversation) learn(was, now []Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names.learn(was, now)
}

// edits lists what a recorded line says otherwise on this run. own goes before what else the conversation knows: a request's own answer is
// meant, where two have one id.
func (t *webConversation) edits(line []byte, own *names) []edit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return editsOf(line, own, &t.names)
}

// A webStream is the one stream of a replayed conversation of HTTP+SSE, on which all of its answers come. Between the recorded events it
// brings what stands nowhere in them: refusals, and answers whose requests come later than they did. It may be used by several goroutines at
// once.
type webStream struct {
	get  *webExchange
	mu   sync.Mutex // guards what follows, and makes its users take turns
	say  exchange.Between
	held []*unit // events that answer what has not been asked, in recorded order
}

// close says that nothing passes any more. It waits for what is under way.
func (s *webStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say = nil
}

// tell sends a line of our own. A client that is gone does not read it.
func (s *webStream) tell(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.send(append(append([]byte("event: message\ndata: "), line...), "\n\n"...), line)
}

// send puts an event that holds a line on the stream. The caller holds mu.
func (s *webStream) send(event, line []byte) error {
	if s.say == nil {
		return nil
	}
	if err := s.get.conversation.Line(Server, line, s.get.asked.Arrival); err != nil {
		return err
	}
	_ = s.say(event)
	return nil
}

// hold keeps an event back that answers what has not been asked, and reports whether it did: its ids may be those of other requests of
// this run.
func (s *webStream) hold(u *unit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.get.conversation.asked(u.data()) {
		return false
	}
	raw := bytes.Clone(u.raw)
	s.held = append(s.held, newUnit(raw))
	return true
}

// came sends what was held back until now: another request has come.
func (s *webStream) came() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held
	s.held = nil
	for _, u := range held {
		if !s.get.conversation.asked(u.data()) {
			s.held = append(s.held, u)
			continue
		}
		if err := s.send(u.edited(s.get.conversation.edits(u.data(), new(names)))); err != nil {
			return err
		}
	}
	return nil
}

// asked reports whether the requests that a recorded line answers have come.
func (t *webConversation) asked(line []byte) bool {
	messages, _, err := Parse(line)
	if err != nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range messages {
		if m := &messages[i]; m.IsAnswer() && m.hasID() && t.names.ids[string(m.ID)] == "" {
			return false
		}
	}
	return true
}
