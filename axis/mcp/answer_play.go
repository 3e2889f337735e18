package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// maxSettle is how long a line of the client waits, on the tape, for those of the server that had passed before it.
const maxSettle = 100 * time.Millisecond

// A play is one recorded conversation while it is held again.
type play struct {
	s    *Served
	o    *ServeOptions
	talk *recordedTalk
	out  *outbox
	told bool // a notification went out last; of the one that writes

	mu      sync.Mutex              // guards what follows
	queues  map[bookKey][]*bookCall // what was not asked for yet
	pings   []*bookCall
	came    []bool  // by turn: it has come, or is not waited for any more
	open    int     // the first turn that neither came nor was given up
	free    int     // the next line that nobody asked for, of the talk's
	owned   []armed // what was asked for and not written yet
	served  map[*bookCall]asker
	batches map[*bookLine]bool        // those that were armed
	late    map[*bookCall][]*bookLine // those that were passed before this request came
	tells   map[string]int            // how often the client told what, by bookTurn.told
	cancels map[string]*bookCall      // that the client had cancelled before their answer, by id
	asks    map[string]*bookAsk       // requests of the server that wait for their response, by id
	timer   *time.Timer
	last    time.Time // when something came last
	lastAt  int64     // when that came while recording
	ended   bool      // the client has ended
	stopped bool
	err     error
}

// An asker is who asked: the names of this run.
type asker struct {
	id    json.RawMessage
	token json.RawMessage
	at    time.Time
}

// An armed line is one whose request came.
type armed struct {
	line  *bookLine
	since time.Time
	at    int64 // when its request came while recording
}

func newPlay(s *Served, o *ServeOptions) *play {
	p := &play{
		s: s, o: o, talk: s.talk, queues: make(map[bookKey][]*bookCall), served: make(map[*bookCall]asker), late: make(map[*bookCall][]*bookLine),
		batches: make(map[*bookLine]bool), tells: make(map[string]int), cancels: make(map[string]*bookCall), asks: make(map[string]*bookAsk), last: time.Now(),
	}
	if p.talk == nil {
		p.talk = &recordedTalk{}
	}
	p.came = make([]bool, len(p.talk.turns))
	for _, c := range p.talk.calls {
		if c.method == "ping" {
			p.pings = append(p.pings, c)
			continue
		}
		p.queues[c.bookKey] = append(p.queues[c.bookKey], c)
	}
	return p
}

// begin writes what the server said before anything was asked.
func (p *play) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step()
}

// hear takes one line of the client.
func (p *play) hear(b []byte) error {
	p.out.settled(maxSettle)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped { // the server had ended: nobody hears this
		return io.EOF
	}
	if err := p.o.Log.Line(Client, b, 0); err != nil {
		return err
	}
	clean := p.s.book.log.Redact(Client, b)
	raw, _, err := Parse(b)
	if err != nil { // nobody answered such a line
		p.tell(toldText)
		p.step()
		return nil
	}
	for i := range clean.Messages {
		if i < len(raw) {
			p.message(&raw[i], &clean.Messages[i])
		}
	}
	p.step()
	return nil
}

// message takes one message: as it came, and redacted.
func (p *play) message(m, clean *Message) {
	switch {
	case m.IsRequest():
		p.request(m, clean)
	case m.IsAnswer():
		p.response(m)
	default:
		p.tell(m.Method)
		if m.Method == notedCancelled {
			p.cancelled(idName(member(m.Params, spotRequest)))
		}
	}
}

func (p *play) request(m, clean *Message) {
	who := asker{id: append(json.RawMessage(nil), m.ID...), token: append(json.RawMessage(nil), tokenOf(m.Params)...), at: time.Now()}
	if m.Method == "ping" && p.s.talk != nil {
		p.ping(who)
		return
	}
	k := bookKey{m.Method, p.s.book.log.Digest(m.Method, clean.Params)}
	queue := p.queues[k]
	if len(queue) == 0 {
		p.refuse(m, clean, k)
		return
	}
	c := queue[0]
	if p.queues[k] = queue[1:]; len(queue) == 1 {
		delete(p.queues, k)
	}
	p.s.book.mu.Lock()
	c.served = true
	p.s.book.mu.Unlock()
	p.served[c] = who
	p.turned(c.turn, c.at)
	if c.err == answerLost {
		p.refuseAs(m, clean, fmt.Sprintf("record %d is the same, and %s", c.seq, answerLost))
		return
	}
	p.arm(c, who.at, func(l *bookLine) bool { return c.cancelled == 0 || l.place < c.cancelled })
	p.overdue(c)
	if c.cancelled > 0 {
		p.cancels[idName(who.id)] = c
	}
}

// cancelled lets what the server said to a request after the client had cancelled it be said.
func (p *play) cancelled(id string) {
	c := p.cancels[id]
	if c == nil {
		return
	}
	delete(p.cancels, id)
	p.arm(c, time.Now(), func(l *bookLine) bool { return l.place > c.cancelled })
}

// arm makes the lines that belong to c, and that are meant, wait for their places. Those of a batch do when the first of its requests
// has come.
func (p *play) arm(c *bookCall, now time.Time, meant func(*bookLine) bool) {
	for _, l := range p.talk.owned[c] {
		if !meant(l) {
			continue
		}
		if len(l.parts) > 1 {
			if p.batches[l] {
				continue
			}
			p.batches[l] = true
		}
		p.owned = append(p.owned, armed{line: l, since: now, at: c.at})
	}
}

// ping answers a ping: as it was answered, and where it comes more often than it did, as any server does.
func (p *play) ping(who asker) {
	if len(p.pings) > 0 {
		c := p.pings[0]
		p.pings = p.pings[1:]
		if c.answer != nil {
			p.served[c] = who
			p.put(&bookLine{parts: []bookPart{{payload: c.answer, call: c, answer: true}}}, nil)
		}
		return
	}
	p.out.put(outgoing{bytes: answerOf(who.id, "result", []byte("{}"))})
}

// refuse answers a request that is not on the tape.
func (p *play) refuse(m, clean *Message, k bookKey) {
	why := p.s.why
	if p.s.talk != nil {
		why = p.s.book.nearest(p.talk, k, clean)
	}
	p.refuseAs(m, clean, why)
}

// refuseAs answers a request that nothing on the tape answers, with the reason.
func (p *play) refuseAs(m, clean *Message, why string) {
	server := p.talk.Server
	if p.s.talk == nil {
		server = p.s.name
	}
	p.s.book.refuse(server, m.Method, why)
	p.o.Log.Fault(Client, m.ID, refusedAs+why)
	p.out.put(outgoing{bytes: errorAnswer(m.ID, notOnTape(clean, why))})
}

func (p *play) response(m *Message) {
	id := idName(m.ID)
	a := p.asks[id]
	if a == nil {
		return
	}
	delete(p.asks, id)
	if a.turn >= 0 {
		p.turned(a.turn, a.at)
	}
}

// tell takes what asks for nothing: a notification, by its method, or toldText.
func (p *play) tell(what string) {
	p.tells[what]++
	for i, t := range p.talk.turns {
		if t.told == what && t.nth <= p.tells[what] && !p.came[i] {
			p.turned(i, t.at)
			return
		}
	}
}

// turned notes that a turn has come.
func (p *play) turned(i int, at int64) {
	p.last, p.lastAt = time.Now(), at
	if i >= 0 {
		p.came[i] = true
	}
}

// overdue writes the parts of lines that were passed before c came.
func (p *play) overdue(c *bookCall) {
	for _, l := range p.late[c] {
		for i := range l.parts {
			if l.parts[i].call == c {
				p.put(l, l.parts[i:i+1])
			}
		}
	}
	delete(p.late, c)
}

// step writes what is due, in the order of the places, and sees to it that what is held up is not held up for ever.
func (p *play) step() {
	for !p.stopped {
		for p.open < len(p.came) && p.came[p.open] {
			p.open++
		}
		a, own := p.next()
		if a == nil {
			break
		}
		if p.missing(a.line) >= 0 {
			if !p.ended || own < 0 {
				break
			}
		}
		p.pass(a.line, own)
	}
	p.hold()
}

// next is the line of the smallest place that may go out, and its index among those that were asked for, -1 for one that nobody
// asked for; nil for none.
func (p *play) next() (*armed, int) {
	own := -1
	for i := range p.owned {
		if own < 0 || earlier(p.owned[i].line, p.owned[own].line) {
			own = i
		}
	}
	if p.free < len(p.talk.free) {
		l := p.talk.free[p.free]
		if own < 0 || earlier(l, p.owned[own].line) && (!p.ended || p.missing(l) < 0) {
			return &armed{line: l, since: p.last, at: p.lastAt}, -1
		}
	}
	if own < 0 {
		return nil, -1
	}
	return &p.owned[own], own
}

func earlier(a, b *bookLine) bool {
	if a.after != b.after {
		return a.after < b.after
	}
	return a.place < b.place || a.place == b.place && a.seq < b.seq
}

// missing is the last turn before a line that neither came nor was given up; -1 for none.
func (p *play) missing(l *bookLine) int {
	last := -1
	for i := p.open; i < len(p.came) && p.talk.turns[i].place <= l.after; i++ {
		if !p.came[i] {
			last = i
		}
	}
	return last
}

// pass writes the parts of a line whose requests came, and keeps the others for when they do.
func (p *play) pass(l *bookLine, own int) {
	if own >= 0 {
		p.owned = append(p.owned[:own], p.owned[own+1:]...)
	} else {
		p.free++
	}
	parts := l.parts
	if len(parts) > 1 {
		parts = nil
		for _, part := range l.parts {
			if _, came := p.served[part.call]; part.call == nil || came {
				parts = append(parts, part)
				continue
			}
			p.late[part.call] = append(p.late[part.call], l)
		}
	}
	p.put(l, parts)
}

// put hands a line to the writer.
func (p *play) put(l *bookLine, parts []bookPart) {
	if parts == nil {
		parts = l.parts
	}
	g := outgoing{line: l, parts: parts, due: p.due(l)}
	for _, part := range parts {
		if part.ask != nil {
			if m, ok := messageOf(part.payload, p.s.book.store); ok {
				p.asks[idName(m.ID)] = part.ask
			}
		}
		g.asked = append(g.asked, p.served[part.call])
	}
	p.out.put(g)
}

// due is when a line goes out: at once, or as long after what came last as it did while recording.
func (p *play) due(l *bookLine) time.Time {
	if p.o.Speed <= 0 {
		return time.Time{}
	}
	from, at := p.last, p.lastAt
	return from.Add(time.Duration(float64(max(l.at-at, 0)) * float64(time.Millisecond) / p.o.Speed))
}

// hold starts the clock for what is held up by lines of the client that may not come any more; they are given up when it has run out.
func (p *play) hold() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.stopped {
		return
	}
	p.endIfDone()
	if p.ended {
		return
	}
	var first time.Time
	var until uint64
	consider := func(a *armed, more time.Duration) {
		i := p.missing(a.line)
		if i < 0 {
			return
		}
		if t := a.since.Add(recordedFor(a.at, p.talk.turns[i].at) + more); first.IsZero() || t.Before(first) {
			first, until = t, a.line.after
		}
	}
	for i := range p.owned {
		consider(&p.owned[i], p.s.book.order.hold)
	}
	if p.free < len(p.talk.free) && first.IsZero() {
		consider(&armed{line: p.talk.free[p.free], since: p.last, at: p.lastAt}, holdFree)
	}
	if !first.IsZero() {
		p.timer = time.AfterFunc(time.Until(first), func() { p.giveUp(until) })
	}
}

// giveUp waits no more for the turns up to a place.
func (p *play) giveUp(until uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.open; i < len(p.came) && p.talk.turns[i].place <= until; i++ {
		p.came[i] = true
	}
	p.step()
}

// Notifications of the client that its server's lines stand behind.
const (
	notedInitialized = "notifications/initialized"
	notedCancelled   = "notifications/cancelled"
)

// refusedAs begins the error on the tape of a request that was refused.
const refusedAs = "not on the tape: "

// notOnTape is what a client is told whose request is not on the tape. m is redacted.
func notOnTape(m *Message, why string) string {
	what := m.Method
	if name := nameIn(m.Params); name != "" {
		what += " " + name
	}
	return fmt.Sprintf("%s%s; %s; Tapedeck replays offline and answers only what was recorded", refusedAs, what, why)
}

// idName is an id in one form.
func idName(id json.RawMessage) string { return strings.TrimSpace(string(id)) }
