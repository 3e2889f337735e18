package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// maxFirst is how long a client's first line may be, in bytes, that opens a conversation.
	maxFirst = 1 << 20
	// maxEarly is how much, in bytes, is kept of what passes before a relay is decided.
	maxEarly = 256 << 10
)

// early is what came before a relay was decided, in order.
type early struct {
	pieces []piece
	size   int
	lost   int // bytes that were too many
}

type piece struct {
	from Side
	b    []byte
}

func (e *early) add(from Side, b []byte) {
	n := min(len(b), maxEarly-e.size)
	e.lost += len(b) - n
	e.size += n
	if n > 0 {
		e.pieces = append(e.pieces, piece{from, bytes.Clone(b[:n])})
	}
}

// blanks are the bytes of a line that says nothing.
const blanks = " \t\r\n"

// now returns what the relay is.
func (t *relay) now() state {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// fromClient takes what the client wrote.
func (t *relay) fromClient(b []byte) (pass []byte, err error) {
	switch t.now() {
	case undecided:
		t.keepUnheard(b)
		return t.decide(b)
	case recorded:
		return b, t.record(Client, &t.client, b)
	case refused:
		return nil, t.refuse(b)
	}
	return b, t.hear(Client, b)
}

// clientEnded takes a last line without its end. One that is a message counts as one: servers differ in whether they answer it.
func (t *relay) clientEnded() (pass []byte, err error) {
	last := t.client.end()
	switch state := t.now(); {
	case state == undecided:
		return t.settled(nil, last.line, nil) // what was passed on was
	case state == recorded:
		return nil, t.recordCut(Client, last)
	case state == refused && len(last.line) > 0:
		return nil, t.answerRefused(last.line)
	}
	return nil, nil
}

// fromServer takes what the server wrote.
func (t *relay) fromServer(b []byte) (pass []byte, err error) {
	switch t.keepEarly(Server, b) {
	case recorded:
		return b, t.record(Server, &t.server, b)
	case refused:
		return nil, nil
	case plain:
		return b, t.hear(Server, b)
	}
	return b, nil
}

// serverEnded takes a last line without its end: who reads lines never sees it.
func (t *relay) serverEnded() (pass []byte, err error) {
	if t.now() != recorded {
		return nil, nil
	}
	last := t.server.end()
	if last.lost > 0 {
		t.conversation.Lost(Server, last.lost)
	}
	return nil, t.conversation.Text(Server, last.line)
}

// fromStderr takes what the server wrote to stderr.
func (t *relay) fromStderr(b []byte) (pass []byte, err error) {
	switch t.keepEarly(stderrSide, b) {
	case recorded:
		return b, t.conversation.Stderr(b)
	case plain:
		return b, t.hear(stderrSide, b)
	}
	return b, nil
}

// keepEarly keeps what came from the server where the relay is not decided, and returns what it is.
func (t *relay) keepEarly(from Side, b []byte) state {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == undecided {
		t.early.add(from, b)
	}
	return t.state
}

// decide takes what the client wrote while the relay was not decided.
func (t *relay) decide(b []byte) (pass []byte, err error) {
	if t.o.Refuse != nil {
		t.held = append(t.held, b...)
	}
	for rest := b; ; {
		c, behind, ok := t.client.next(rest)
		line := c.line
		switch {
		case !ok && t.mayOpen():
			return t.waiting(b), nil
		case !ok:
			line = nil // opens nothing
		case len(bytes.TrimLeft(line, blanks)) == 0 && c.lost == 0:
			t.keepEarly(Client, line)
			rest = behind
			continue
		}
		return t.settled(b, line, behind)
	}
}

// mayOpen reports whether the line that has not ended may open a conversation. On a replay blank lines before it are held too.
func (t *relay) mayOpen() bool {
	part := bytes.TrimLeft(t.client.part, blanks)
	return t.client.lost == 0 && len(t.client.part) <= maxFirst && len(t.held) <= maxFirst && (len(part) == 0 || part[0] == '{' || part[0] == '[')
}

// waiting returns what of b is passed on while nothing is decided.
func (t *relay) waiting(b []byte) []byte {
	if t.o.Refuse != nil {
		return nil
	}
	return b
}

// settled takes the line that decides, what stands behind it, and b, of which both are the end.
func (t *relay) settled(b, line, behind []byte) (pass []byte, err error) {
	held := t.held
	line = bytes.Clone(line) // it may stand in the memory of the next one
	state, err := t.settle(line)
	if err != nil {
		return nil, err
	}
	switch state {
	case recorded:
		answered, err := t.conversation.line(Client, line, 0)
		return b, t.recordMore(Client, &t.client, behind, answered, err)
	case refused:
		if err := t.answerRefused(line); err != nil {
			return nil, err
		}
		return nil, t.refuse(behind)
	}
	t.client = lines{}
	if t.o.Refuse != nil {
		return held, nil
	}
	return b, nil
}

// settle decides by the client's first line, and gives a conversation what came before it.
func (t *relay) settle(line []byte) (state, error) {
	var speaks *protocol
	if len(line) <= maxFirst {
		speaks = opening(line)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.early
	t.early = early{}
	switch {
	case speaks == nil || speaks.runs && t.o.Refuse != nil:
		t.state = plain
		return t.state, t.hearEarly(&before)
	case t.o.Refuse != nil:
		t.state = refused
	default:
		t.state = recorded
		t.conversation = t.o.Log.Begin(t.o.Opened)
		return t.state, t.tellEarly(&before)
	}
	return t.state, nil
}

// tellEarly gives the conversation what came before it.
func (t *relay) tellEarly(before *early) (err error) {
	for _, p := range before.pieces {
		switch p.from {
		case stderrSide:
			err = t.conversation.Stderr(p.b)
		case Client:
			_, err = t.conversation.line(Client, p.b, 0)
		case Server:
			err = t.record(Server, &t.server, p.b)
			t.apart = t.apart[:0] // it was passed on
		}
		if err != nil {
			return err
		}
	}
	if before.lost > 0 {
		t.conversation.lose(fmt.Sprintf("%d bytes that the server wrote before the client's first line are not kept", before.lost))
	}
	return nil
}

// record gives the conversation the lines that end in b, and waits until the answers among them are with the kernel.
func (t *relay) record(from Side, l *lines, b []byte) error {
	return t.recordMore(from, l, b, false, nil)
}

// recordMore is record behind a line that was given already.
func (t *relay) recordMore(from Side, l *lines, b []byte, answered bool, err error) error {
	all := len(b)
	for err == nil && len(b) > 0 {
		c, behind, ok := l.next(b)
		if !ok {
			break
		}
		at := all - len(b)
		b = behind
		if c.lost > 0 {
			t.conversation.Lost(from, c.lost)
			continue
		}
		var was bool
		was, err = t.conversation.line(from, c.line, 0)
		answered = answered || was
		if from == Server {
			t.line(at, was)
		}
	}
	if err == nil && answered {
		err = t.conversation.flush()
	}
	return err
}

// line notes a line of the server that begins at at in what is passed on next.
func (t *relay) line(at int, answers bool) {
	if answers && t.told {
		t.apart = append(t.apart, at)
	}
	t.told = !answers
}

// recordCut gives the conversation a line without its end.
func (t *relay) recordCut(from Side, c cut) error {
	if c.lost > 0 {
		t.conversation.Lost(from, c.lost)
		return nil
	}
	if len(c.line) == 0 {
		return nil
	}
	return t.conversation.Line(from, c.line, 0)
}

// refuse answers each line of the client that ends in b.
func (t *relay) refuse(b []byte) error {
	for len(b) > 0 {
		c, behind, ok := t.client.next(b)
		if !ok {
			return nil
		}
		b = behind
		if err := t.answerRefused(c.line); err != nil {
			return err
		}
	}
	return nil
}

// answerRefused gives the client what it gets for a line instead of the server. A client that does not read it is gone.
func (t *relay) answerRefused(line []byte) error {
	if answer := t.o.Refuse(line); len(answer) > 0 {
		_, _ = t.clientOut.write(answer)
	}
	return nil
}

// Heard takes what passes a Relay that turns out to carry no conversation: what the program that is talked with gets and writes. By stream: 0 is
// its stdin, 1 its stdout, 2 its stderr.
type Heard struct {
	// To takes the bytes of each stream, each in the order in which they passed, from one goroutine at a time. An error ends the Relay.
	To [3]io.Writer
	// Whole is set by Relay: the stream came to its own end, and all of it was given. One that was left by who reads it, or cut, is not.
	Whole [3]bool
}

// streamOf is the stream that a side writes.
func streamOf(from Side) int {
	switch from {
	case Client:
		return 0
	case Server:
		return 1
	}
	return 2
}

// hear gives what passes where the relay is known to carry no conversation.
func (t *relay) hear(from Side, b []byte) error {
	if t.o.Heard == nil || len(b) == 0 {
		return nil
	}
	_, err := t.o.Heard.To[streamOf(from)].Write(b)
	return err
}

// keepUnheard keeps what the client wrote while the relay is not decided: as much as a first line may be long, and one read.
func (t *relay) keepUnheard(b []byte) {
	switch {
	case t.o.Heard == nil:
	case len(t.unheard) > maxFirst: // nothing but blank lines
		t.missed[0] = true
	default:
		t.unheard = append(t.unheard, b...)
	}
}

// hearEarly gives what came before the relay was decided. The mutex is held.
func (t *relay) hearEarly(before *early) error {
	err := t.hear(Client, t.unheard)
	t.unheard = nil
	for _, p := range before.pieces {
		if p.from != Client { // blank lines, which stand in unheard
			err = errors.Join(err, t.hear(p.from, p.b))
		}
	}
	t.missed[1], t.missed[2] = before.lost > 0, before.lost > 0
	return err
}

// endHeard gives what is left where nothing has decided what the relay is, and says what of it is whole.
func (t *relay) endHeard() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.o.Heard == nil || t.conversation != nil {
		return nil
	}
	var err error
	if t.state == undecided {
		err = t.hearEarly(&t.early)
	}
	for i := range t.whole {
		t.o.Heard.Whole[i] = t.whole[i] && !t.missed[i]
	}
	return err
}

// reachedEnd notes that a stream gave all that it had. One whose reader was closed here, because nobody takes any more, did not.
func (t *relay) reachedEnd(from *end, side Side, err error) {
	if !errors.Is(err, io.EOF) || from.left.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.whole[streamOf(side)] = true
}
