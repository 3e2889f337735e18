package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Call asks the peer and waits for its reply, which is put in result (nil drops it) as it came. id must be of NewID and used
// once; it is a string on the wire. params are encoded like a handler's result, nil leaves them out. The error is an *Error where
// the peer answered with one, ErrClosed when the conversation ended before, and that of ctx, whose end leaves the peer to go
// on: a reply that comes later is dropped.
func (c *Conn) Call(ctx context.Context, id, method string, params any, result *json.RawMessage) error {
	b := newBuffer()
	var err error
	if b.b, err = appendCall(b.b, id, method, params); err != nil {
		return fmt.Errorf("encode the params of %s: %w", method, err)
	}
	ch := make(chan reply, 1)
	if err := c.expect(id, ch); err != nil {
		return err
	}
	if err := c.out.put(ctx, b, true); err != nil {
		c.forget(id)
		return err
	}
	select {
	case r := <-ch:
		if result != nil {
			*result = r.result
		}
		return r.err
	case <-ctx.Done():
		c.forget(id)
		return ctx.Err()
	}
}

// Call is Conn.Call for the handler of r, which gives its place to another while it waits: the peer may need an answer of this
// side to find its own. Not for Inline handlers.
func (r *Request) Call(ctx context.Context, id, method string, params any, result *json.RawMessage) error {
	r.Conn.park()
	defer r.Conn.unpark()
	return r.Conn.Call(ctx, id, method, params, result)
}

// park takes a handler out of those that run and begins what waits longest in its place.
func (c *Conn) park() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked++
	c.running--
	if next := c.pop(); next != nil {
		c.begin(next)
	}
	c.changed()
}

// unpark puts it back, though there may be one more than Concurrent for a while.
func (c *Conn) unpark() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked--
	c.running++
	c.changed()
}

// expect notes that a reply to id goes to ch.
func (c *Conn) expect(id string, ch chan<- reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return ErrClosed
	case id == "":
		return fmt.Errorf("call: want an id of NewID, got none")
	case c.calls[id] != nil:
		return fmt.Errorf("call: the id %q is in use: take one of NewID", id)
	}
	c.calls[id] = ch
	c.changed()
	return nil
}

func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// answered gives a reply to the call that waits for it.
func (c *Conn) answered(m *message) {
	c.mu.Lock()
	ch := c.called(m.id)
	c.mu.Unlock()
	if ch == nil {
		c.refused(RefusedStray)
		return
	}
	if m.failure != nil {
		ch <- reply{err: parseFailure(m.failure)}
		return
	}
	ch <- reply{result: m.result}
}

// called returns, and forgets, the call with that raw id. c.mu is held.
func (c *Conn) called(raw []byte) chan<- reply {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	id := raw[1 : len(raw)-1]
	ch := c.calls[string(id)]
	if ch == nil { // perhaps with escapes
		var s jsonscan.Scanner
		s.Reset(raw)
		id = s.TextBytes()
		ch = c.calls[string(id)]
	}
	if ch != nil {
		delete(c.calls, string(id))
	}
	return ch
}

// Notify queues a notification and returns at once: ErrQueueFull where the peer does not keep up, ErrClosed at the end.
func (c *Conn) Notify(method string, params any) error {
	err := c.notify(c.ctx, method, params, false)
	if errors.Is(err, ErrQueueFull) {
		c.refused(RefusedQueueFull)
	}
	return err
}

// NotifyWait queues a notification and waits for room. The error is ErrClosed at the end, or that of ctx.
func (c *Conn) NotifyWait(ctx context.Context, method string, params any) error {
	return c.notify(ctx, method, params, true)
}

func (c *Conn) notify(ctx context.Context, method string, params any, wait bool) error {
	b := newBuffer()
	var err error
	if b.b, err = appendCall(b.b, "", method, params); err != nil {
		return fmt.Errorf("encode the params of %s: %w", method, err)
	}
	return c.out.put(ctx, b, wait)
}
