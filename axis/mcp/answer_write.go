package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// codeRefused is the code of the error that stands for an answer which is not on the tape.
const codeRefused = -32000

// answerOf is an answer, as a line without its end. kind is "result" or "error".
func answerOf(id json.RawMessage, kind string, value []byte) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(append(append(b, `,"`...), kind...), `":`...)
	return append(append(b, value...), '}')
}

// errorAnswer answers with an error.
func errorAnswer(id json.RawMessage, message string) []byte {
	return errorWith(id, codeRefused, message)
}

func errorWith(id json.RawMessage, code int, message string) []byte {
	b := fmt.Appendf(nil, `{"code":%d,"message":`, code)
	return answerOf(id, "error", append(jsonscan.AppendText(b, message), '}'))
}

// lineOf is one line of messages, with its end; nil for none.
func lineOf(messages [][]byte, batch bool) []byte {
	switch {
	case len(messages) == 0:
		return nil
	case batch || len(messages) > 1:
		return append(append([]byte{'['}, bytes.Join(messages, []byte{','})...), ']', '\n')
	}
	return append(bytes.Clone(messages[0]), '\n')
}

// write writes what the outbox gives.
func (p *play) write(g *outgoing) error {
	if g.line == nil {
		return p.writeLine(append(g.bytes, '\n'))
	}
	given := p.s.wasGiven(g)
	if !given {
		p.s.book.order.wait(p.out.ctx, p.talk, g.line)
	}
	defer p.s.book.order.wrote(p.talk, g.line)
	if p.o.Before != nil {
		if err := p.o.Before(g.line.seq); err != nil {
			return err
		}
	}
	if g.line.text {
		return p.writeText(g.line)
	}
	var messages [][]byte
	for i := range g.parts {
		if b := p.partFor(&g.parts[i], &g.asked[i]); b != nil {
			messages = append(messages, b)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	if given {
		return p.o.Log.Line(Server, lineOf(messages, false), 0)
	}
	answers := slices.ContainsFunc(g.parts, func(part bookPart) bool { return part.answer })
	if out, ok := p.o.Out.(*os.File); ok {
		p.s.book.order.out.turn(out)
		if answers && p.told {
			settle(out, settleFor)
		}
	}
	p.told = !answers
	return p.writeLine(lineOf(messages, len(g.line.parts) > 1))
}

// partFor is the message of a part as it is said to who asked; nil for one that this run has no name for. A message that the tape has lost
// becomes an error, and that of the whole.
func (p *play) partFor(part *bookPart, who *asker) []byte {
	b, err := part.payload.Bytes(p.s.book.store)
	if err != nil {
		p.mu.Lock()
		p.fail(fmt.Errorf("a recorded message of %s cannot be read: %w", p.talk.Server, err))
		p.mu.Unlock()
		if !part.answer {
			return nil
		}
		return errorAnswer(who.id, "the recorded answer cannot be read: "+err.Error())
	}
	if b = renamed(b, part, who); b != nil && p.o.Reveal != nil {
		b = p.o.Reveal(b)
	}
	return b
}

// renamed gives a message of the tape the names of this run: its id, the token of its progress. Nil is for progress of a request that
// wants none.
func renamed(b []byte, part *bookPart, who *asker) []byte {
	switch {
	case part.call == nil:
		return b
	case part.name == spotToken && len(who.token) == 0:
		return nil
	}
	return edited(b, func(name string) []byte {
		switch {
		case name == spotID && part.answer, name == spotSubscription, name == spotRequest && !part.answer:
			return who.id
		case name == spotToken:
			return who.token
		}
		return nil
	})
}

func (p *play) writeLine(b []byte) error {
	if err := p.o.Log.Line(Server, b, 0); err != nil {
		return err
	}
	return p.writeOut(b)
}

func (p *play) writeOut(b []byte) error {
	if _, err := p.o.Out.Write(b); err != nil {
		return errClientGone
	}
	return nil
}

// writeText writes a line that is no message, or a piece of stderr.
func (p *play) writeText(l *bookLine) error {
	b, err := l.parts[0].payload.Bytes(p.s.book.store)
	if err != nil {
		p.mu.Lock()
		p.fail(fmt.Errorf("what %s wrote cannot be read: %w", p.talk.Server, err))
		p.mu.Unlock()
		return nil
	}
	if p.o.Reveal != nil {
		b = p.o.Reveal(b)
	}
	if l.stderr {
		if err := p.o.Log.Stderr(b); err != nil || p.o.Err == nil {
			return err
		}
		_, _ = p.o.Err.Write(b) // a client that does not read it loses nothing of the talk
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
