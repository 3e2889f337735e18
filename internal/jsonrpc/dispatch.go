package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// A work is a request and what it holds until it is answered.
type work struct {
	Request
	size int   // bytes of its frame
	held int64 // of which so many are in the budget
	own  bool  // its size is in Conn.held
}

// pop takes the request that waits longest; nil where none does. c.mu is held.
func (c *Conn) pop() *work {
	if len(c.waiting) == 0 {
		c.waiting = nil // keeps no memory
		return nil
	}
	w := c.waiting[0]
	c.waiting[0], c.waiting = nil, c.waiting[1:]
	return w
}

// admit gives a request to a handler or puts it in line. Where there is no place, it waits for one, and with it the reader;
// while a call of ours is unanswered it refuses instead, for the reply to that call may stand behind this request.
func (c *Conn) admit(w *work) {
	why, wait := c.place(w)
	for ; why != "" && wait != nil; why, wait = c.place(w) {
		if why != RefusedMemory {
			<-wait.Done()
		} else {
			w.held, _ = c.o.Budget.Take(wait, int64(w.size))
		}
	}
	switch why {
	case "":
	case RefusedShutdown:
		c.drop(w, why, "shutting down: connect again later")
	default:
		c.drop(w, why, "busy: too much in flight on this connection: wait for replies before sending more")
	}
}

// place tries to give w a place. It says why not, and then what to wait for, nil where the answer is final.
func (c *Conn) place(w *work) (why Refusal, wait context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := c.o.Limits.Waiting
	switch full := c.parked >= most || c.running >= c.o.Limits.Concurrent && len(c.waiting) >= most; {
	case c.ended != nil, c.draining:
		return RefusedShutdown, nil
	case full:
		why = RefusedBusy
	case !c.pay(w):
		why = RefusedMemory
	default:
		c.begin(w)
		return "", nil
	}
	if len(c.calls) > 0 {
		return why, nil
	}
	c.changed()
	wait, c.change = context.WithCancel(c.ctx)
	return why, wait
}

// pay makes room in memory for w: of the connection's own while that lasts, then of the budget. c.mu is held.
func (c *Conn) pay(w *work) bool {
	switch {
	case w.held > 0:
		return true
	case c.held+w.size <= c.o.Limits.Allowance:
		c.held += w.size
		w.own = true
		return true
	}
	var ok bool
	w.held, ok = c.o.Budget.TryTake(int64(w.size))
	return ok
}

// begin starts a worker with w, or lets it wait for one. c.mu is held.
func (c *Conn) begin(w *work) {
	if c.running >= c.o.Limits.Concurrent {
		c.waiting = append(c.waiting, w)
		return
	}
	c.running++
	c.wg.Add(1)
	go c.work(w)
}

// work handles requests until none waits. The reader starts it and Serve waits for it.
func (c *Conn) work(w *work) {
	defer c.wg.Done()
	for w != nil {
		c.handle(w)
		w = c.next(w)
	}
}

// next returns what w held, and the request that waits longest.
func (c *Conn) next(w *work) *work {
	c.o.Budget.Give(w.held)
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.own {
		c.held -= w.size
	}
	var next *work
	if c.running <= c.o.Limits.Concurrent { // else there are others to take it
		next = c.pop()
	}
	if next == nil {
		c.running--
		c.maybeIdle()
	}
	c.changed()
	return next
}

// drop answers a request that has no place.
func (c *Conn) drop(w *work, why Refusal, message string) {
	c.o.Budget.Give(w.held)
	if w.ID == nil {
		c.refused(why)
		return
	}
	c.refuse(w.ID, Errorf(CodeBusy, "%s", message), why)
}

// refuse answers a frame without a handler.
func (c *Conn) refuse(id []byte, e *Error, why Refusal) {
	c.refused(why)
	b := newBuffer()
	b.b = appendError(b.b, id, e)
	_ = c.out.put(c.ctx, b, true)
}

// handle runs the handler of a request and queues its reply.
func (c *Conn) handle(w *work) {
	began := time.Now()
	result, err := c.run(w)
	c.spent.Add(w.Cost)
	code := 0
	if err != nil {
		code = errorOf(err).Code
	}
	if c.o.Meter.Handled != nil {
		c.o.Meter.Handled(w.Method, time.Since(began), code)
	}
	if w.ID != nil {
		c.reply(w, result, err)
	}
	if w.After != nil {
		_, _ = c.guarded(w, func() (any, error) { w.After(); return nil, nil })
	}
	var fatal *Fatal
	if errors.As(err, &fatal) {
		c.shut(fatal.Code, fatal.Reason)
	}
}

// run calls the handler.
func (c *Conn) run(w *work) (result any, err error) {
	if c.o.Handler == nil {
		return nil, Errorf(CodeMethodNotFound, "unknown method: %s", w.Method)
	}
	return c.guarded(w, func() (any, error) { return c.o.Handler(c.ctx, &w.Request) })
}

// guarded calls f and turns a panic into an error.
func (c *Conn) guarded(w *work, f func() (any, error)) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("a handler panicked", "method", w.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, Errorf(CodeInternal, "internal error")
		}
	}()
	return f()
}

// reply queues the reply to w. It waits for room, which keeps the place of w's handler taken.
func (c *Conn) reply(w *work, result any, err error) {
	b := newBuffer()
	if err == nil {
		if b.b, err = appendResult(b.b, w.ID, result); err != nil {
			c.log.Error("a result cannot be encoded", "method", w.Method, "error", err)
			err = Errorf(CodeInternal, "internal error")
		}
	}
	if err != nil {
		b.b = appendError(b.b[:0], w.ID, errorOf(err))
	}
	c.spent.Add(int64(len(b.b)))
	_ = c.out.put(c.ctx, b, true) // fails when the conversation has ended: nobody waits
}
