package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A Conn is one peer of a conversation. Its methods may be called by many goroutines; they work while Serve runs, and a Call
// or Notify that comes before it waits for it.
type Conn struct {
	stream Stream
	o      Options
	log    *slog.Logger
	ctx    context.Context // of handlers
	cancel context.CancelFunc
	out    queue
	lastID atomic.Uint64
	spent  atomic.Int64 // bytes that the next request pays for, besides its own

	// wg waits for the workers, the writer and whoever closes the stream. All are begun by Serve's goroutine or by one that
	// wg waits for, or under mu while ended is nil.
	wg sync.WaitGroup

	mu       sync.Mutex
	running  int     // handlers that run and wait for no call of theirs
	parked   int     // handlers that wait in Request.Call
	waiting  []*work // requests that wait for one
	held     int     // bytes of requests in flight that the budget was not asked for
	calls    map[string]chan<- reply
	change   func()        // wakes the reader, which waits for something; nil while it does not
	idle     chan struct{} // closed when draining and nothing runs; nil before Shutdown
	draining bool
	ended    error // why it has ended; nil before
	shutting bool  // somebody closes the stream
}

// A reply is what a call waits for.
type reply struct {
	result json.RawMessage
	err    error
}

// New makes a peer on s, which it closes in the end. Nothing is read or written before Serve. o may be nil.
func New(s Stream, o *Options) *Conn {
	c := &Conn{stream: s, calls: map[string]chan<- reply{}}
	if o != nil {
		c.o = *o
	}
	c.o.Limits.fill()
	if c.o.IDPrefix == "" {
		c.o.IDPrefix = "cb-"
	}
	c.log = c.o.Logger
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.out.init(&c.o)
	return c
}

// NewID returns an id for Call that this Conn has not given before.
func (c *Conn) NewID() string {
	return c.o.IDPrefix + strconv.FormatUint(c.lastID.Add(1), 10)
}

// Context ends with the conversation.
func (c *Conn) Context() context.Context { return c.ctx }

// Serve converses until the stream ends, until Close or Shutdown, or until ctx ends, which closes the stream with
// CloseGoingAway. When it returns nothing of c runs any more. The error is nil when the peer ended it in good order or this
// side closed it, a *CloseError where a code other than 1000, 1001 and none was given, and otherwise what failed.
func (c *Conn) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.shut(CloseGoingAway, "shutting down") })
	defer stop()
	c.wg.Add(1)
	go c.write()
	err := c.read()
	c.lastWords(err)
	c.end(err)
	_ = c.stream.Close(0, "")
	c.wg.Wait()
	return c.cause()
}

// lingering is how long it may take to say what is to be said when nothing more can be read.
const lingering = time.Second

// lastWords says what the peer may still want to know when reading has ended.
func (c *Conn) lastWords(err error) {
	var closed *CloseError
	switch {
	case errors.Is(err, io.EOF):
		c.linger()
	case errors.Is(err, ErrTooLong):
		c.refuse(nil, Errorf(CodeInvalidRequest, "invalid request: %v", err), RefusedInvalid)
		c.out.flush(lingering)
	case errors.As(err, &closed) && closed.Ours:
		c.out.flush(lingering) // the answers to what was right before
		_ = c.stream.Close(closed.Code, closed.Reason)
	}
}

// linger answers what has been read, for a peer that has stopped writing may still read. Calls of ours get no reply any more.
func (c *Conn) linger() {
	c.mu.Lock()
	c.failCalls()
	idle := c.drain()
	c.mu.Unlock()
	soon, stop := context.WithTimeout(c.ctx, lingering)
	defer stop()
	select {
	case <-idle:
		c.out.flush(lingering)
	case <-soon.Done(): // perhaps for it does not read either
	}
}

// failCalls ends the calls that wait. c.mu is held.
func (c *Conn) failCalls() {
	for id, ch := range c.calls {
		ch <- reply{err: ErrClosed}
		delete(c.calls, id)
	}
}

// drain takes no request from now on. It returns what is closed when none runs. c.mu is held.
func (c *Conn) drain() <-chan struct{} {
	c.draining = true
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	c.changed()
	c.maybeIdle()
	return c.idle
}

// cause turns the reason of the end into what Serve returns.
func (c *Conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var closed *CloseError
	switch {
	case errors.Is(c.ended, io.EOF), errors.Is(c.ended, ErrClosed):
		return nil
	case errors.As(c.ended, &closed) && closed.clean():
		return nil
	}
	return c.ended
}

// read takes frames until there are no more.
func (c *Conn) read() error {
	var s jsonscan.Scanner
	tokens := newBucket(c.o.Limits.Rate, c.o.Limits.Burst)
	for {
		if wait := tokens.owed(); wait > 0 { // the peer is too fast
			paid, stop := context.WithTimeout(c.ctx, wait)
			<-paid.Done() // before the next frame is in memory, which is everybody's
			stop()
		}
		frame, held, err := c.stream.Read()
		if err != nil {
			return err
		}
		c.take(&s, &tokens, frame, held)
		runtime.Gosched() // one frame a turn: who sends many at once would keep the processor until it is taken away, 10 ms
	}
}

// take handles one frame, of which held bytes are in the budget.
func (c *Conn) take(s *jsonscan.Scanner, tokens *bucket, frame []byte, held int64) {
	var m message
	wrong := m.parse(s, frame)
	if wrong == nil && m.reply() {
		c.o.Budget.Give(held)
		c.answered(&m)
		return
	}
	tokens.take(1 + float64(c.spent.Swap(0)+int64(len(frame)))/TokenBytes)
	if wrong == nil && m.badParams {
		wrong = Errorf(CodeInvalidParams, "invalid params: want an object or an array")
		if m.id == nil {
			c.refused(RefusedInvalid)
			c.o.Budget.Give(held)
			return
		}
	}
	if wrong != nil {
		c.o.Budget.Give(held)
		why := RefusedInvalid
		if wrong.Code == CodeParse {
			why = RefusedParse
		}
		c.refuse(m.id, wrong, why)
		return
	}
	w := &work{Request: Request{Conn: c, Method: m.method, ID: m.id, Params: m.params}, size: len(frame), held: held}
	if c.o.Inline != nil && c.o.Inline(m.method) {
		c.handle(w)
		c.o.Budget.Give(held)
		return
	}
	c.admit(w)
}

// end makes the end of the conversation known to all who wait for something of it. The first cause counts.
func (c *Conn) end(cause error) {
	c.mu.Lock()
	if c.ended == nil {
		c.ended = cause
	}
	c.failCalls()
	for w := c.pop(); w != nil; w = c.pop() {
		c.o.Budget.Give(w.held)
	}
	c.changed()
	c.maybeIdle()
	c.mu.Unlock()
	c.cancel()
	c.out.close()
}

// changed wakes the reader where it waits. c.mu is held.
func (c *Conn) changed() {
	if c.change != nil {
		c.change()
		c.change = nil
	}
}

// Close ends the conversation once what is queued has been written, with a code of RFC 6455 and a reason of at most 123 bytes. It
// does not wait for the end, and is harmless when repeated.
func (c *Conn) Close(code int, reason string) { c.shut(code, reason) }

// shut writes the queue out and closes the stream, in a goroutine that Serve waits for.
func (c *Conn) shut(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shutting || c.ended != nil {
		return
	}
	c.shutting = true
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		c.out.flush(c.o.Limits.WriteTimeout)
		c.mu.Lock()
		if c.ended == nil {
			c.ended = ErrClosed
		}
		c.changed()
		c.mu.Unlock()
		slow := time.AfterFunc(closeWait, func() { _ = c.stream.Close(0, "") })
		defer slow.Stop()
		_ = c.stream.Close(code, reason)
		c.end(ErrClosed)
	}()
}

// closeWait is how long the peer has to answer a close.
const closeWait = time.Second

// Shutdown ends the conversation in good order: what has been read is answered, new requests are refused with CodeBusy, the
// queue is written, the stream closed with CloseGoingAway. When ctx ends before the last handler does, it goes on without. It
// returns ctx's error then; Serve returns shortly after it.
func (c *Conn) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	idle := c.drain()
	c.mu.Unlock()
	var err error
	select {
	case <-idle:
	case <-c.ctx.Done():
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.shut(CloseGoingAway, "shutting down")
	return err
}

// maybeIdle tells Shutdown that nothing runs. c.mu is held.
func (c *Conn) maybeIdle() {
	if c.draining && c.running == 0 && c.parked == 0 && len(c.waiting) == 0 {
		select {
		case <-c.idle:
		default:
			close(c.idle)
		}
	}
}

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

// refused tells the meter of a frame that was not handled.
func (c *Conn) refused(why Refusal) {
	if c.o.Meter.Refused != nil {
		c.o.Meter.Refused(why)
	}
}
