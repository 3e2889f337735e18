package deck

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A toldCall is a tool call of the main conversation on its way to the daemon.
type toldCall struct {
	call   sessionlog.ToolCall    // without arguments once it was told
	result *sessionlog.ToolResult // nil while it has none, and once it was told
	told   cas.Digest             // of the turn as it was told; zero before
	lost   bool                   // the daemon refused it
	stands bool                   // the whole tape has it: before its end it may only have looked so
}

func (c *toldCall) waits() bool { return c.told.IsZero() && !c.lost }

// forget drops what was told.
func (c *toldCall) forget() { c.call.Arguments, c.result = nil, nil }

// A callBook keeps what was told of the calls of a conversation. A call is known by its id, however often it is heard.
type callBook struct {
	byID  map[string]*toldCall
	open  []*toldCall // that wait, in the order of the calls
	fresh []*toldCall // whose verdict was not asked for, in the same order
	bytes int         // of the results that wait
	// again is told, when the whole tape is read at the end, of a call that was told before and that has its arguments and result
	// once more; nil before.
	again func(*toldCall) error
}

func newCallBook() *callBook { return &callBook{byID: make(map[string]*toldCall)} }

// hear takes an event of the conversation.
func (b *callBook) hear(e sessionlog.Event) error {
	switch e := e.(type) {
	case *sessionlog.ToolRequested:
		for i := range e.Calls {
			b.made(&e.Calls[i])
		}
	case *sessionlog.ToolCompleted:
		for i := range e.Results {
			if err := b.given(&e.Results[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *callBook) made(c *sessionlog.ToolCall) {
	known := b.byID[c.ID]
	switch {
	case known == nil:
		known = &toldCall{call: sessionlog.ToolCall{ID: c.ID, Name: c.Name, Arguments: bytes.Clone(c.Arguments)}}
		b.byID[c.ID] = known
		b.open, b.fresh = append(b.open, known), append(b.fresh, known)
	case b.again != nil:
		known.call.Arguments = bytes.Clone(c.Arguments)
	}
	known.stands = known.stands || b.again != nil
}

func (b *callBook) given(r *sessionlog.ToolResult) error {
	c := b.byID[r.CallID]
	if c == nil || !c.waits() && b.again == nil {
		return nil
	}
	if c.result == nil && c.waits() {
		b.bytes += len(r.Output)
	}
	c.result = &sessionlog.ToolResult{CallID: r.CallID, Output: bytes.Clone(r.Output), IsError: r.IsError}
	if c.waits() {
		return nil
	}
	defer c.forget()
	return b.again(c)
}

// ready returns the calls that wait and whose result is known, in the order of the calls. One without a result holds nobody up:
// where its conversation has gone on, none will come.
func (b *callBook) ready() []*toldCall {
	var out []*toldCall
	for _, c := range b.open {
		if c.result != nil {
			out = append(out, c)
		}
	}
	return out
}

// tidy strikes out what waits no longer.
func (b *callBook) tidy() {
	left := b.open[:0]
	b.bytes = 0
	for _, c := range b.open {
		if !c.waits() {
			c.forget()
			continue
		}
		if c.result != nil {
			b.bytes += len(c.result.Output)
		}
		left = append(left, c)
	}
	clear(b.open[len(left):])
	b.open = left
}
