package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
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

	// wg waits for the workers, the writer and whoever closes the stream. All are begun by Serve's goroutine or by one that
	// wg waits for, or under mu while ended is nil.
	wg sync.WaitGroup

	mu       sync.Mutex
	running  int     // handlers that run and wait for no call of theirs
	parked   int     // handlers that wait in Request.Call
	waiting  []*work // requests that wait for one
	held     int     // bytes of requests in flight that the budget was not asked for
	calls    map[string]chan<- reply
	change   chan struct{} // closed, and made anew, when the reader may have been waiting for something; nil while it does not
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
	t := time.NewTimer(lingering)
	defer t.Stop()
	select {
	case <-idle:
		c.out.flush(lingering)
	case <-t.C:
	case <-c.ctx.Done(): // it does not read either
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
		frame, held, err := c.stream.Read()
		if err != nil {
			return err
		}
		c.take(&s, &tokens, frame, held)
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
	if wait := tokens.take(); wait > 0 {
		c.sleep(wait)
	}
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
		c.refuse(m.id, wrong, refusalOf(wrong))
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

func refusalOf(e *Error) Refusal {
	if e.Code == CodeParse {
		return RefusedParse
	}
	return RefusedInvalid
}

// sleep stops reading because the peer is too fast.
func (c *Conn) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.ctx.Done():
	}
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
		close(c.change)
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
