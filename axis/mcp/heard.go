package mcp

import (
	"errors"
	"io"
)

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
