package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// maxSettle is how long a line of the client waits, on the tape, for those of the server that had passed before it.
const maxSettle = 100 * time.Millisecond

// A player holds one recorded conversation over stdio again. One goroutine hears the client, another writes to it.
type player struct {
	*lane.Player[requestKey, *recordedLine]
	s          *Served
	o          *ServeOptions
	transcript *transcript
	told       bool      // a notification went out last; of the one that writes
	beside     *takeOver // the program that goes on in its place; nil for none

	out     sync.Mutex // held by who writes to the client
	failed  firstError
	mu      sync.Mutex               // guards what follows
	pings   []*recordedCall          // that were not asked for yet
	served  map[*recordedCall]caller // who asked
	cancels map[string]*recordedCall
	asks    map[string]*recordedAsk // requests of the server that wait for their response, by id
}

// A firstError is the first error of several goroutines.
type firstError struct{ err atomic.Pointer[error] }

func (f *firstError) set(err error) {
	if err != nil {
		f.err.CompareAndSwap(nil, &err)
	}
}

func (f *firstError) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// A caller is who asked: the names of this run.
type caller struct {
	id    json.RawMessage
	token json.RawMessage
}

// errClientGone is the error of a client that takes nothing any more.
var errClientGone = errors.New("the client has gone")

func newPlayer(s *Served, o *ServeOptions) *player {
	p := &player{
		s: s, o: o, transcript: s.transcript,
		served: make(map[*recordedCall]caller), cancels: make(map[string]*recordedCall), asks: make(map[string]*recordedAsk),
	}
	p.Player = lane.NewPlayer(p.transcript.script, &lane.PlayerOptions[requestKey, *recordedLine]{
		Slack: s.book.hold, Unasked: holdFree, Speed: o.Speed, Key: (*recordedLine).matched,
		Ends: p.transcript.end.byServer, EndWaits: true, Linger: p.linger,
	})
	for _, c := range p.transcript.calls {
		if c.method == methodPing {
			p.pings = append(p.pings, c)
		}
	}
	return p
}

// run writes what is due until the conversation has ended.
func (p *player) run(ctx context.Context) error {
	defer p.Stop()
	for {
		due, err := p.Next(ctx)
		if err == nil {
			err = p.write(ctx, &due)
		}
		switch {
		case ctx.Err() != nil:
			return cmp.Or(p.writeLeft(), p.failed.get())
		case errors.Is(err, lane.ErrEnd), errors.Is(err, errClientGone):
			return p.failed.get()
		case err != nil:
			return err
		}
	}
}

// writeLeft writes what the server had written to its stderr before it was killed: who kills it may read that afterwards.
func (p *player) writeLeft() error {
	for _, due := range p.Left() {
		if due.Value.stderr {
			if err := p.writeText(due.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// linger is how long after the client's last line the conversation ends by itself. A server that was sent a signal waits for it, and one that
// ended with a request open for a client that may have waited no longer.
func (p *player) linger(ms int64, ended bool) time.Duration {
	e := &p.transcript.end
	took := lane.Between(ms, e.at)
	switch {
	case sentSignal(e.signal):
		return took + p.s.book.hold
	case e.open && !ended:
		return took + min(took, p.s.book.hold)
	}
	return 0
}

// hear takes one line of the client.
func (p *player) hear(b []byte) error {
	p.Rest(maxSettle)
	if p.Stopped() { // the server had ended: nobody hears this
		return io.EOF
	}
	if err := p.o.Log.Line(Client, b, 0); err != nil {
		return err
	}
	clean := p.s.book.log.Redact(Client, b)
	raw, _, err := Parse(b)
	if err != nil { // nobody answered such a line
		p.tell(noteText)
		return nil
	}
	for i := range clean.Messages {
		if i < len(raw) {
			p.message(&raw[i], &clean.Messages[i])
		}
	}
	return nil
}

// finish notes that the client said its last.
func (p *player) finish(err error) {
	if !errors.Is(err, io.EOF) {
		p.failed.set(err)
	}
	p.Ended()
}

// message takes one message: as it came, and redacted.
func (p *player) message(m, clean *Message) {
	switch {
	case m.IsRequest():
		p.request(m, clean)
	case m.IsAnswer():
		p.response(m)
	case m.Method == notedCancelled:
		p.cancelled(m)
	default:
		p.tell(m.Method)
	}
}

func (p *player) request(m, clean *Message) {
	who := caller{id: bytes.Clone(m.ID), token: bytes.Clone(tokenOf(m.Params))}
	if m.Method == methodPing {
		p.ping(&who)
		return
	}
	k := p.s.book.log.keyOf(clean)
	line, ok := p.Find(k, 0, nil)
	if !ok {
		p.refuse(m, clean, p.s.book.nearest(p.transcript, k, clean))
		return
	}
	c := p.transcript.script[line].Value.call
	p.s.book.mu.Lock()
	c.served = true
	p.s.book.mu.Unlock()
	p.mu.Lock()
	p.served[c] = who
	if c.cancelled > 0 {
		p.cancels[idName(who.id)] = c
	}
	p.mu.Unlock()
	if strings.HasPrefix(c.err, RefusedAs) { // a fork's, which was answered so
		p.o.Log.Fault(Client, m.ID, c.err)
	}
	p.Came(line)
	if c.err == answerLost {
		p.refuse(m, clean, fmt.Sprintf("record %d is the same, and %s", c.seq, answerLost))
	}
}

// cancelled lets what the server said to a request after the client had cancelled it be said.
func (p *player) cancelled(m *Message) {
	id := idName(member(m.Params, spotRequest))
	p.mu.Lock()
	c := p.cancels[id]
	delete(p.cancels, id)
	p.mu.Unlock()
	if c != nil {
		p.Came(c.cancelLine)
		return
	}
	p.tell(m.Method)
}

// ping answers a ping: as it was answered, and where it comes more often than it did, as any server does.
func (p *player) ping(who *caller) {
	answer := emptyAnswer(who.id)
	if len(p.pings) > 0 {
		c := p.pings[0]
		if p.pings = p.pings[1:]; c.answer == nil {
			return
		}
		answer = p.partFor(c.answerPart(), who)
	}
	p.Say(&recordedLine{own: answer})
}

// refuse answers a request that nothing on the tape answers, with the reason.
func (p *player) refuse(m, clean *Message, why string) {
	p.s.book.refused.Add(Refused{Server: p.transcript.Server, Method: m.Method, Why: why})
	p.o.Log.Fault(Client, m.ID, RefusedAs+why)
	p.Say(&recordedLine{own: errorAnswer(m.ID, notOnTape(clean, why))})
}

func (p *player) response(m *Message) {
	id := idName(m.ID)
	p.mu.Lock()
	a := p.asks[id]
	delete(p.asks, id)
	p.mu.Unlock()
	if a != nil && a.line >= 0 {
		p.Came(a.line)
	}
}

// tell takes what asks for nothing: a notification, by its method, or noteText.
func (p *player) tell(what string) {
	if line, ok := p.Find(noteKey(what), 0, nil); ok {
		p.Came(line)
	}
}

// write writes what is due.
func (p *player) write(ctx context.Context, due *lane.Due[*recordedLine]) error {
	l := due.Value
	if l.own != nil {
		return p.writeLine(append(l.own, '\n'))
	}
	given := p.s.wasGiven(p, l)
	if !given {
		p.s.book.order.wait(ctx, l)
	}
	defer p.s.book.order.wrote(l)
	p.beside.await(ctx, l)
	if p.o.Before != nil {
		if err := p.o.Before(l.seq); err != nil {
			return err
		}
	}
	if l.text {
		return p.writeText(l)
	}
	messages, answers := p.messages(l, due.For)
	switch {
	case len(messages) == 0:
		return nil
	case given:
		return p.o.Log.Line(Server, lineOf(messages, false), 0)
	}
	if out, ok := p.o.Out.(*os.File); ok {
		p.s.book.out.turn(out)
		defer p.o.Log.give(out, answers, p.told, settleFor)()
	}
	p.told = !answers
	return p.writeLine(lineOf(messages, len(l.parts) > 1))
}

// messages are the parts of a line that are meant for lines of the client, as they are said now, and whether one of them answers.
func (p *player) messages(l *recordedLine, owners []int) (messages [][]byte, answers bool) {
	for i := range l.parts {
		part := &l.parts[i]
		if part.call != nil && !slices.Contains(owners, part.owner(l)) {
			continue
		}
		p.mu.Lock()
		who := p.served[part.call]
		if part.ask != nil {
			if m, ok := messageOf(part.payload, p.s.book.store); ok {
				p.asks[idName(m.ID)] = part.ask
			}
		}
		p.mu.Unlock()
		if b := p.partFor(part, &who); b != nil {
			messages, answers = append(messages, b), answers || part.answer
		}
	}
	return messages, answers
}

// partFor is the message of a part as it is said to who asked; nil for one that this run has no name for. A message that the tape has lost
// becomes an error, and that of the whole.
func (p *player) partFor(part *recordedPart, who *caller) []byte {
	b, err := p.s.book.message(part, who, p.o.Reveal)
	if err != nil {
		p.failed.set(fmt.Errorf("a recorded message of %s cannot be read: %w", p.transcript.Server, err))
		if !part.answer {
			return nil
		}
		return errorAnswer(who.id, "the recorded answer cannot be read: "+err.Error())
	}
	return b
}

func (p *player) writeLine(b []byte) error {
	if err := p.o.Log.Line(Server, b, 0); err != nil {
		return err
	}
	return p.writeOut(b)
}

func (p *player) writeOut(b []byte) error {
	p.out.Lock()
	defer p.out.Unlock()
	if _, err := p.o.Out.Write(b); err != nil {
		return errClientGone
	}
	return nil
}

// writeText writes a line that is no message, or a piece of stderr.
func (p *player) writeText(l *recordedLine) error {
	b, err := l.parts[0].payload.Bytes(p.s.book.store)
	if err != nil {
		p.failed.set(fmt.Errorf("what %s wrote cannot be read: %w", p.transcript.Server, err))
		return nil
	}
	if p.o.Reveal != nil {
		b = p.o.Reveal(b)
	}
	if l.stderr {
		if err := p.o.Log.Stderr(b); err != nil || p.o.Err == nil {
			return err
		}
		_, _ = p.o.Err.Write(b) // a client that does not read it loses nothing of the conversation
		return nil
	}
	for line := range bytes.Lines(b) {
		if bytes.HasSuffix(line, []byte{'\n'}) {
			err = p.o.Log.Line(Server, line, 0)
		} else {
			err = p.o.Log.Text(Server, line)
		}
		if err != nil {
			return err
		}
	}
	return p.writeOut(b)
}

// end says on the tape who ended the conversation, and returns the exit status of the server.
func (p *player) end() int {
	by := Client
	if p.transcript.end.byServer && !p.HasEnded() {
		by = Server
	}
	p.o.Log.endedBy(by, false)
	return p.transcript.end.exit
}

// Methods that are known here.
const (
	methodPing       = "ping"
	notedInitialized = "notifications/initialized"
	notedCancelled   = "notifications/cancelled"
)

// RefusedAs begins the error on the tape of a request that was refused.
const RefusedAs = "not on the tape: "

// notOnTape is what a client is told whose request is not on the tape. m is redacted.
func notOnTape(m *Message, why string) string {
	what := m.Method
	if name := Subject(m.Params); name != "" {
		what += " " + name
	}
	return fmt.Sprintf("%s%s; %s; Tapedeck replays offline and answers only what was recorded", RefusedAs, what, why)
}

// idName is an id in one form.
func idName(id json.RawMessage) string { return strings.TrimSpace(string(id)) }
