package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A chat is a talk for formats that tell beside the answers how a run ended, and what the model got beside a prompt.
type chat struct {
	talk
	r      *Report
	beside []json.RawMessage // what the model gets with the next prompt
	reason string            // why the run under way ends, "" where nothing says so
}

// newChat returns a chat whose runs are called by a session's id, or by the format where there is none.
func newChat(r *Report, id, protocol string, emit func(sessionlog.Event) error) *chat {
	if id == "" {
		id = r.Format
	}
	c := &chat{r: r}
	c.start(id, protocol, emit)
	return c
}

// maxBeside bounds what is kept for a prompt that may never come.
const maxBeside = 256

// with keeps what is no prompt for the next one, as an attachment of it.
func (c *chat) with(block json.RawMessage) {
	if len(c.beside) < maxBeside {
		c.beside = append(c.beside, block)
		return
	}
	c.r.skip("what the model got beside a prompt", fmt.Sprintf("more than %d for one prompt", maxBeside), 0)
}

// ask begins a run with a prompt.
func (c *chat) ask(e *sessionlog.RunStarted) error {
	if err := c.over(); err != nil {
		return err
	}
	e.Attachments = append(c.beside, e.Attachments...)
	c.beside = nil
	return c.talk.ask(e)
}

// turn is a whole answer, and why the run ends where it is the last one; "" where nothing says so.
func (c *chat) turn(a *answer, reason string) error {
	if err := c.flush(); err != nil {
		return err
	}
	a.some = true
	c.said, c.reason = *a, reason
	return c.answer()
}

// over ends the run under way.
func (c *chat) over() error {
	reason := c.reason
	c.reason = ""
	return c.talk.end(reason)
}

// ended ends the conversation of a transcript that was read with err, and tells what there was; c is nil where nothing was.
func (r *Report) ended(c *chat, err error) error {
	if c == nil {
		return cmp.Or(err, error(&Error{Path: r.File, Err: fmt.Errorf("%w: no session in it", ErrEmpty)}))
	}
	if err == nil {
		err = c.end()
	}
	r.count(c.d)
	return err
}

// end ends the conversation.
func (c *chat) end() error {
	err := c.over()
	for range c.beside {
		c.r.skip("what the model would have got with the next prompt", "there is no next prompt", 0)
	}
	c.beside = nil
	return err
}

// say adds a text to an answer.
func (a *answer) say(text string) {
	switch {
	case text == "":
	case a.blocks != nil:
		a.blocks = append(a.blocks, textBlock(text))
	default:
		a.texts = append(a.texts, text)
	}
}

// owned copies JSON that is borrowed, for an event: what stands there, but for the white space of files that are written for people.
func owned(b []byte) json.RawMessage {
	if bytes.IndexByte(b, '\n') < 0 {
		return bytes.Clone(b)
	}
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return bytes.Clone(b)
	}
	return out.Bytes()
}

// textAnd is a list of blocks: one of a text, which is JSON, unless that is "", and those of another list. open is how the text's block
// begins.
func textAnd(open string, text json.RawMessage, blocks []byte) json.RawMessage {
	rest := owned(blocks)
	var first json.RawMessage
	if string(text) != `""` {
		first = append(append(append(first, open...), text...), "},"...)
	}
	return append(append([]byte{'['}, first...), rest[1:]...)
}
