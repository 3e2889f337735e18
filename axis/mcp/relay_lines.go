package mcp

import (
	"bytes"
	"cmp"
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

// early is what came before a relay was decided, by stream: all of the client, and of the server as much as is kept. What a server says
// before it was told anything stands before the client's first line.
type early struct {
	by   [3][]byte
	lost int // bytes of the server that were too many
}

func (e *early) add(from Side, b []byte) {
	if from != Client {
		n := min(len(b), maxEarly-len(e.by[streamOf(Server)])-len(e.by[streamOf(stderrSide)]))
		e.lost += len(b) - n
		b = b[:n]
	}
	to := &e.by[streamOf(from)]
	*to = append(*to, b...)
}

// asked is what the client wrote.
func (e *early) asked() []byte { return e.by[streamOf(Client)] }

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
		return t.decide(b)
	case recorded:
		return b, t.record(Client, &t.client, b)
	case refused:
		return nil, t.refuse(b)
	}
	return b, t.hear(streamOf(Client), b)
}

// clientEnded takes a last line without its end. One that is a message counts as one: servers differ in whether they answer it.
func (t *relay) clientEnded() (pass []byte, err error) {
	if t.now() == undecided {
		if pass, err = t.settled(t.client.part, nil); err != nil {
			return nil, err
		}
	}
	last := t.client.end()
	switch state := t.now(); {
	case state == recorded && last.lost > 0:
		t.conversation.Lost(Client, last.lost)
	case state == recorded && len(last.line) > 0:
		return nil, t.conversation.Line(Client, last.line, 0)
	case state == refused && len(last.line) > 0:
		return nil, t.answerRefused(last.line)
	}
	return pass, nil
}

// fromServer takes what the server wrote.
func (t *relay) fromServer(b []byte) (pass []byte, err error) {
	switch t.keepEarly(Server, b) {
	case recorded:
		return b, t.record(Server, &t.server, b)
	case refused:
		return nil, nil
	case plain:
		return b, t.hear(streamOf(Server), b)
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
		return b, t.hear(streamOf(stderrSide), b)
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

// decide takes what the client wrote while the relay was not decided. Until then on a replay nothing of it is passed on.
func (t *relay) decide(b []byte) (pass []byte, err error) {
	t.keepEarly(Client, b)
	t.asked += len(b)
	for rest := b; ; {
		c, behind, ends := t.client.next(rest)
		line := c.line
		if !ends {
			line = t.client.part
		}
		switch first := bytes.TrimLeft(line, blanks); {
		case ends && len(first) == 0:
			rest = behind
			continue
		case !ends && t.asked <= maxFirst && (len(first) == 0 || first[0] == '{' || first[0] == '['):
			if t.o.Refuse != nil {
				return nil, nil
			}
			return b, nil
		case !ends:
			line = nil // opens nothing
		}
		return t.settled(line, b)
	}
}

// settled decides by the client's first line, which ends in b, and returns what is passed on then.
func (t *relay) settled(line, b []byte) (pass []byte, err error) {
	state, before, err := t.settle(line)
	switch {
	case err != nil:
		return nil, err
	case state == refused:
		return nil, t.refuse(bytes.TrimLeft(before.asked(), blanks))
	case state == plain && t.o.Refuse != nil:
		return before.asked(), nil
	}
	return b, nil
}

// settle decides by the client's first line, and gives what came until now to who takes it.
func (t *relay) settle(line []byte) (state, early, error) {
	var speaks *protocol
	if len(line) <= maxFirst {
		speaks = opening(line)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.early
	t.early, t.client = early{}, lines{limit: t.client.limit}
	var err error
	switch {
	case speaks == nil || speaks.runs && t.o.Refuse != nil:
		t.state = plain
		err = t.hearEarly(&before)
	case t.o.Refuse != nil:
		t.state = refused
		t.conversation = t.o.Log.Begin(t.o.Opened)
	default:
		t.state = recorded
		t.conversation = t.o.Log.Begin(t.o.Opened)
		err = t.recordEarly(&before)
	}
	return t.state, before, err
}

// recordEarly gives the conversation what came until it was one.
func (t *relay) recordEarly(before *early) (err error) {
	err = cmp.Or(t.record(Server, &t.server, before.by[streamOf(Server)]), t.conversation.Stderr(before.by[streamOf(stderrSide)]))
	t.parts = t.parts[:0] // it was passed on
	if err = cmp.Or(err, t.record(Client, &t.client, before.asked())); err != nil {
		return err
	}
	return t.conversation.during(func() {
		if before.lost > 0 {
			t.conversation.lose(fmt.Sprintf("%d bytes that the server wrote before the client's first line are not kept", before.lost))
		}
	})
}

// record gives the conversation the lines that end in b, and waits until the answers among them are with the kernel.
func (t *relay) record(from Side, l *lines, b []byte) error {
	answered := false
	for at, c := range l.in(b) {
		if c.lost > 0 {
			t.conversation.Lost(from, c.lost)
			continue
		}
		was, err := t.conversation.line(from, c.line, 0)
		if err != nil {
			return err
		}
		answered = answered || was
		if from == Server {
			t.line(at, was)
		}
	}
	if answered {
		return t.conversation.flush()
	}
	return nil
}

// line notes a line of the server that begins at at in what is passed on next.
func (t *relay) line(at int, answers bool) {
	if answers || len(t.parts) == 0 {
		t.parts = append(t.parts, part{at, answers, t.told})
	}
	t.told = !answers
}

// refuse answers each line of the client that ends in b.
func (t *relay) refuse(b []byte) error {
	for _, c := range t.client.in(b) {
		if err := t.answerRefused(c.line); err != nil {
			return err
		}
	}
	return nil
}

// answerRefused gives the client what it gets for a line instead of the server. A client that does not read it is gone.
func (t *relay) answerRefused(line []byte) error {
	answer, err := t.o.Refuse.line(t.conversation, line)
	if err == nil && len(answer) > 0 {
		_, _ = t.clientOut.write(answer)
	}
	return err
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
func (t *relay) hear(stream int, b []byte) error {
	if t.o.Heard == nil || len(b) == 0 {
		return nil
	}
	_, err := t.o.Heard.To[stream].Write(b)
	return err
}

// hearEarly gives what came before the relay was decided. The mutex is held.
func (t *relay) hearEarly(before *early) (err error) {
	for stream, b := range before.by {
		err = errors.Join(err, t.hear(stream, b))
	}
	t.missed = before.lost > 0
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
		t.o.Heard.Whole[i] = t.whole[i] && (i == 0 || !t.missed)
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
