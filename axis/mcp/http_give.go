package mcp

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A giver gives a recorded answer: each line in its place, with the ids of this run.
type giver struct {
	on   bool
	name webNames // of the requests that this answer answers
	far  bool     // the lines answer requests of other exchanges: a GET

	talk    *tapedTalk // nil where nothing is known of it
	lines   *carried
	at      uint64 // arrival of the recorded exchange
	next    int    // of lines.server
	saying  []uint64
	ends    uint64 // the place that the end of the answer waits for; 0 for none
	rename  bool   // what comes is held until it is whole
	held    []byte
	cuts    []int // ends of chunks in held
	begun   bool  // the first bytes have passed
	closing bool
}

// prepare notes what the request is called now.
func (g *giver) prepare(p *passage) {
	rec := p.asked.Recorded
	g.on, g.at, g.far = true, rec.Arrival, p.asked.Request.Method == http.MethodGet
	p.learn(&g.name)
	p.talk.learn(&g.name)
	if g.talk = p.talk.was; g.talk == nil {
		return
	}
	g.talk.batched.came(rec.Arrival)
	if g.lines = g.talk.carried[rec.Arrival]; g.lines == nil {
		g.lines = new(carried)
	}
	if g.far {
		g.ends = g.talk.before(rec.Seq)
	}
}

// begin notes that the request has come.
func (g *giver) begin() {
	if g.talk != nil {
		g.talk.order.begin(g.at, g.lines)
	}
}

// learn notes what the recorded request called what this one calls otherwise.
func (p *passage) learn(n *webNames) {
	x := p.asked.Recorded.Exchange
	if len(p.messages) == 0 || x.RequestPayload == nil {
		return
	}
	body, err := x.RequestPayload.Bytes(p.over.blobs)
	if err != nil {
		return // whoever gives the answer finds out
	}
	if body, err = exchange.Decode(exchange.HeaderOf(x.RequestHeaders).Get("Content-Encoding"), body, maxUnit); err != nil {
		return
	}
	was, _, err := Parse(body)
	if err != nil || len(was) != len(p.messages) {
		return
	}
	for i := range was {
		n.learn(&was[i], &p.messages[i])
	}
}

// head prepares the answer. Where other ids are put in, nobody knows how long it is.
func (g *giver) head(p *passage, h http.Header) {
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

// chunk returns what the program gets of a chunk.
func (g *giver) chunk(ctx context.Context, p *passage, b []byte, ended bool) ([][]byte, error) {
	if p.reader == nil {
		return [][]byte{b}, g.atEnd(ctx, ended)
	}
	if _, isJSON := p.reader.(*jsonReader); isJSON && !g.begun {
		if err := g.await(ctx); err != nil {
			return nil, err
		}
	}
	g.begun = true
	var out [][]byte
	var err error
	if g.rename {
		out, err = g.renamed(ctx, p, b, ended)
	} else {
		out, err = [][]byte{b}, g.asItStands(ctx, p, b, ended)
	}
	if err != nil {
		return nil, err
	}
	return out, g.atEnd(ctx, ended)
}

// asItStands waits until all lines of a chunk are due.
func (g *giver) asItStands(ctx context.Context, p *passage, b []byte, ended bool) error {
	return p.reader.take(b, ended, func(u *unit) error {
		if err := g.due(ctx, u); err != nil {
			return err
		}
		return p.unit(u, u.data())
	})
}

// renamed holds what is not whole, and puts names into what is. What stays as it was keeps its chunks.
func (g *giver) renamed(ctx context.Context, p *passage, b []byte, ended bool) (out [][]byte, err error) {
	var now []byte // that this chunk made whole
	_, packed := p.reader.(*packedReader)
	g.held = append(g.held, b...)
	err = p.reader.take(b, ended, func(u *unit) error {
		if err := g.due(ctx, u); err != nil {
			return err
		}
		if p.stream != nil && p.stream.hold(u) {
			g.release(len(u.raw))
			return nil
		}
		edits := g.edits(p, u)
		raw, line := u.edited(edits)
		if packed {
			g.held = nil
		} else if before, last := g.release(len(u.raw)); len(edits) == 0 {
			out, raw = append(out, before...), last
		}
		now = append(now, raw...)
		return p.unit(u, line)
	})
	if err != nil {
		return nil, err
	}
	if ended || p.reader == nil || p.reader.idle() {
		before, last := g.release(len(g.held))
		out, now = append(out, before...), append(now, last...)
	} else if len(g.held) > 0 {
		g.cuts = append(g.cuts, len(g.held))
	}
	if len(now) > 0 {
		out = append(out, now)
	}
	if p.stream != nil && len(out) > 1 { // what comes between stands between events
		out = [][]byte{bytes.Join(out, nil)}
	}
	return out, nil
}

// release takes n bytes out of what is held: chunk by chunk those that came before this chunk, and those of this one.
func (g *giver) release(n int) (before [][]byte, last []byte) {
	from := 0
	for i := 0; i < len(g.cuts) && g.cuts[i] < n; i++ {
		before = append(before, bytes.Clone(g.held[from:g.cuts[i]]))
		from = g.cuts[i]
	}
	last = bytes.Clone(g.held[from:n])
	g.held = append(g.held[:0], g.held[n:]...)
	g.cuts = g.cuts[:0] // all are of what was held first
	return before, last
}

// edits are what a unit of the recording says otherwise on this run.
func (g *giver) edits(p *passage, u *unit) []edit {
	data := u.data()
	if len(data) == 0 || u.event != nil && u.event.name == "endpoint" {
		return nil
	}
	return p.talk.edits(data, &g.name)
}

// due waits until a unit is due.
func (g *giver) due(ctx context.Context, u *unit) error {
	if _, _, err := Parse(u.data()); err != nil || u.event == nil {
		return nil
	}
	return g.await(ctx)
}

// await waits until the next line is due.
func (g *giver) await(ctx context.Context) error {
	if g.talk == nil || g.next >= len(g.lines.server) {
		return nil
	}
	place := g.lines.server[g.next]
	g.next++
	g.saying = append(g.saying, place)
	return g.talk.order.await(ctx, place, g.at)
}

// atEnd holds the end of a stream until what came before it has come.
func (g *giver) atEnd(ctx context.Context, ended bool) error {
	if !ended || g.talk == nil || g.ends == 0 {
		return nil
	}
	return g.talk.order.awaitEnd(ctx, g.ends, g.at)
}

// passed notes that the program got what chunk returned.
func (g *giver) passed() {
	if g.talk == nil {
		return
	}
	for _, place := range g.saying {
		g.talk.order.said(place)
	}
	g.saying = g.saying[:0]
}

// close notes that no more comes.
func (g *giver) close() {
	if g.talk != nil && !g.closing {
		g.closing = true
		g.talk.order.end(g.at, g.lines)
	}
}

// recorded returns the conversation that was recorded of an exchange; nil for none.
func (h *OverHTTP) recorded(a *exchange.Asked) *webTalk {
	if a.Recorded == nil || h.taped == nil {
		return nil
	}
	if was := h.taped.of[a.Recorded.Arrival]; was != nil {
		return h.open(a.Request, was)
	}
	return nil
}

// learn takes names over.
func (t *webTalk) learn(n *webNames) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names.add(n)
}

// edits lists what a recorded line says otherwise on this run.
func (t *webTalk) edits(line []byte, own *webNames) []edit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(editsOf(line, own, &t.names))
}

// A webStream is the one stream of a replayed conversation of HTTP+SSE, on which all of its answers come. Between the recorded events it
// brings what stands nowhere in them: refusals, and answers whose requests come later than they did. It may be used by several goroutines at
// once.
type webStream struct {
	get  *passage
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
	if err := s.get.talk.Line(Server, line, s.get.asked.Arrival); err != nil {
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
	if s.get.talk.asked(u.data()) {
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
		if !s.get.talk.asked(u.data()) {
			s.held = append(s.held, u)
			continue
		}
		if err := s.send(u.edited(s.get.talk.edits(u.data(), new(webNames)))); err != nil {
			return err
		}
	}
	return nil
}

// asked reports whether the requests that a recorded line answers have come.
func (t *webTalk) asked(line []byte) bool {
	messages, _, err := Parse(line)
	if err != nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range messages {
		if m := &messages[i]; m.IsAnswer() && m.hasID() && t.names.ids[string(m.ID)] == nil {
			return false
		}
	}
	return true
}
