package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// DefaultPatience is how long a server's program may take, before the point, to answer what the tape has an answer to.
const DefaultPatience = 30 * time.Second

// TakeOverOptions say how the program of a recorded server goes on in the place of its tape.
type TakeOverOptions struct {
	ServeOptions
	// The program's streams, as in RelayOptions: they become TakeOver's own. A nil ServerErr passes by itself.
	ServerIn, ServerOut, ServerErr *os.File
	// Past says that the run has left the tape: what the client says from then on the program alone answers.
	Past func() bool
	// Ends says that the recorded server had ended by itself before that.
	Ends bool
	// Patience is how long an answer is awaited that is on the tape; 0 is DefaultPatience.
	Patience time.Duration
	// Told is told of each answer of the tape what the program said to the same request, nil for nothing in time. Nil is nobody.
	Told func(a *ToldAnswer)
}

// A ToldAnswer is an answer of the tape beside that of the server's program.
type ToldAnswer struct {
	Seq      uint64 // of the record
	Asked    *Message
	Recorded *Message
	Now      *Message // nil where none came
	Why      string   // why none came
}

// TakeOver is Serve up to where a run leaves its tape, with the server's program beside it: the program is told all that the client says, and
// each answer of the tape waits for its own, which goes nowhere. What the client says from there on it alone answers, what it says unasked
// passes, and the conversation ends when it or the client does.
//
// What the program asks the client before the point gets what the client answers to what the tape asks, in that order.
func (s *Served) TakeOver(ctx context.Context, o *TakeOverOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &takeOver{o: o, end: cancel, gone: make(chan struct{}), waits: make(map[string]*toldCall), own: make(map[string]bool)}
	var err error
	t.in, t.out, err = endPair(o.ServerIn, o.ServerOut)
	defer func() {
		t.in.close()
		t.out.close()
	}()
	if err != nil {
		return err
	}
	t.player = newPlayer(s, &o.ServeOptions)
	if t.player.beside = t; !o.Ends {
		t.player.GoOn()
	}
	go func() { // these end with their files
		t.player.finish(readLines(io.MultiReader(bytes.NewReader(s.heard), o.In), t.hear))
		t.in.closeWrite()
	}()
	go func() {
		_ = readLines(t.out, t.said) // its error is kept
		close(t.gone)
		if t.o.Past() {
			cancel()
		}
	}()
	if o.ServerErr != nil {
		go t.stderr()
	}
	err = t.run(ctx)
	s.book.order.Close(t.player.transcript.stream)
	return errors.Join(err, t.failed.get())
}

// A takeOver is one TakeOver under way: one goroutine hears the client, one the program, and one plays.
type takeOver struct {
	player  *player
	o       *TakeOverOptions
	in, out *end // of the program: written, read
	end     context.CancelFunc
	gone    chan struct{} // closed when the program says no more
	failed  firstError

	mu      sync.Mutex
	left    bool                 // the tape: a line came past the point
	waits   map[string]*toldCall // what the tape answers, by id
	own     map[string]bool      // ids of what the program itself asks the client
	asks    []json.RawMessage    // ids of what it asks that the tape asks in its place
	replies []*Message           // of the client to the tape's, which the program has not asked for
}

// A toldCall is a request that the tape answers.
type toldCall struct {
	asked  *Message
	answer chan *Message // has room for it
}

// run plays until both have ended, or the client alone where the tape ends the conversation.
func (t *takeOver) run(ctx context.Context) error {
	err := t.player.run(ctx)
	if err == nil && ctx.Err() == nil && t.player.HasEnded() {
		select {
		case <-t.gone:
		case <-ctx.Done():
		}
	}
	return err
}

// fail keeps the first error, and ends all.
func (t *takeOver) fail(err error) error {
	if err != nil {
		t.failed.set(err)
		t.end()
	}
	return err
}

// hear takes one line of the client.
func (t *takeOver) hear(line []byte) error {
	messages, batch, err := Parse(bytes.Clone(line))
	if !t.o.Past() {
		t.expect(messages)
		t.tell(line, messages, batch || err != nil)
		return t.player.hear(line)
	}
	t.leave()
	select {
	case <-t.gone:
		t.end()
		return io.EOF
	default:
	}
	if err := t.o.Log.Line(Client, line, 0); err != nil {
		return t.fail(err)
	}
	t.tell(line, messages, batch || err != nil)
	return nil
}

// leave has the tape say no more than what was asked for by now.
func (t *takeOver) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left {
		t.left = true
		t.player.Cut()
		t.player.s.book.order.Close(t.player.transcript.stream)
	}
}

// expect notes what the tape answers.
func (t *takeOver) expect(messages []Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range messages {
		if m := &messages[i]; m.IsRequest() {
			t.waits[idName(m.ID)] = &toldCall{m, make(chan *Message, 1)}
		}
	}
}

// tell gives the program a line of the client; whole says that it is passed on as it came. An answer goes to what the program asked.
func (t *takeOver) tell(line []byte, messages []Message, whole bool) {
	if whole || len(messages) != 1 || !messages[0].IsAnswer() {
		_, _ = t.in.write(line) // that it takes none any more is seen by its end
		return
	}
	m := &messages[0]
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := idName(m.ID); t.own[id] {
		delete(t.own, id)
		_, _ = t.in.write(line)
		return
	}
	t.replies = append(t.replies, m)
	t.reply()
}

// reply gives the program what it asked for and the client has answered. mu is held.
func (t *takeOver) reply() {
	for len(t.asks) > 0 && len(t.replies) > 0 {
		line := renamed(t.replies[0].Raw, &recordedPart{ask: new(recordedAsk)}, &caller{id: t.asks[0]})
		t.asks, t.replies = t.asks[1:], t.replies[1:]
		_, _ = t.in.write(append(bytes.Clone(line), '\n'))
	}
}

// said takes one line of the program.
func (t *takeOver) said(line []byte) error {
	messages, _, err := Parse(bytes.Clone(line))
	passes := err != nil && t.o.Past()
	for i := range messages {
		passes = t.takes(&messages[i]) || passes
	}
	if !passes {
		return nil
	}
	return t.fail(t.pass(line))
}

// takes takes one message of the program, and reports whether the client is to have it.
func (t *takeOver) takes(m *Message) (passes bool) {
	past := t.o.Past()
	t.mu.Lock()
	defer t.mu.Unlock()
	id := idName(m.ID)
	switch call := t.waits[id]; {
	case m.IsAnswer() && call != nil:
		select {
		case call.answer <- m:
		default: // a second answer is none
		}
		return false
	case m.IsRequest() && past:
		t.own[id] = true
	case m.IsRequest():
		t.asks = append(t.asks, m.ID)
		t.reply()
	}
	return past
}

// pass gives the client a line of the program, once it is on the tape.
func (t *takeOver) pass(line []byte) error {
	if err := t.o.Log.Line(Server, line, 0); err != nil {
		return err
	}
	_ = t.player.writeOut(line) // a client that is gone says so by its end
	return nil
}

// stderr passes on what the program writes to stderr past the point: until then the tape has it.
func (t *takeOver) stderr() {
	buf := make([]byte, relayBuffer)
	for {
		n, err := t.o.ServerErr.Read(buf)
		if n > 0 && t.o.Past() {
			if t.fail(t.o.Log.Stderr(buf[:n])) != nil {
				return
			}
			if t.o.Err != nil {
				_, _ = t.o.Err.Write(buf[:n])
			}
		}
		if err != nil {
			return
		}
	}
}

// await waits until the program has answered too what a line of the tape answers.
func (t *takeOver) await(ctx context.Context, l *recordedLine) {
	if t == nil {
		return
	}
	for i := range l.parts {
		part := &l.parts[i]
		if !part.answer {
			continue
		}
		t.player.mu.Lock()
		id := idName(t.player.served[part.call].id)
		t.player.mu.Unlock()
		t.mu.Lock()
		call := t.waits[id]
		t.mu.Unlock()
		if call != nil {
			t.compare(ctx, l, part, call)
		}
	}
}

// compare tells what the program said to a request that the tape answers.
func (t *takeOver) compare(ctx context.Context, l *recordedLine, part *recordedPart, call *toldCall) {
	a := &ToldAnswer{Seq: l.seq, Asked: call.asked}
	select {
	case a.Now = <-call.answer:
	case <-t.gone:
		if len(call.answer) == 0 {
			a.Why = "the program has ended"
		} else {
			a.Now = <-call.answer
		}
	case <-time.After(cmp.Or(t.o.Patience, DefaultPatience)):
		a.Why = errLate.Error()
	case <-ctx.Done():
		return
	}
	if m, ok := messageOf(part.payload, t.player.s.book.store); ok && t.o.Told != nil {
		a.Recorded = m
		t.o.Told(a)
	}
}
