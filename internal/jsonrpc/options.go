// Package jsonrpc is one peer of a JSON-RPC 2.0 conversation that calls and is called, both at once, over a stream of text
// frames.
//
// Goals: nothing that the other side does makes this one hold unbounded memory, wait for ever or lose a reply; a call costs
// little more than its frames; requests run side by side and are answered in any order.
//
// Non-goals: batches, methods by reflection, any other version. It knows no method.
//
// # Vocabulary
//
// A frame is one JSON text: a request (it has an id), a notification (it has none) or a reply. A Stream carries frames: a
// WebSocket (package websock), or lines over a socket (NewLines). A Conn is a peer on a Stream.
//
// # What comes in
//
// The envelope is read by internal/jsonscan; params and results stay as they came. An id is kept as bytes and comes back as those bytes: no
// number is rounded. What is wrong is answered with the codes below, and the conversation goes on; docs/reference/daemon-wire.md has the table.
// A reply to a call that nobody waits for is dropped and counted. A frame longer than the limit ends the conversation: a WebSocket with its
// close code, lines with one error CodeInvalidRequest.
//
// # Ordering
//
// One goroutine reads. A request that Options.Inline names is handled before the next frame is read; all others run
// concurrently, begun in the order in which they came. Frames go out in the order in which they were queued: a notification
// that a handler sends stands before its own reply.
//
// # Bounds
//
// Each is one of Limits. Where handlers and those that wait are full, or the bytes of requests in flight exceed what the connection may hold
// (its own Allowance, and beyond that what the Budget of all connections has left), the peer is not read any further: TCP tells it so. Two
// exceptions keep two peers from waiting for each other: a handler that waits in Request.Call has no place among those that run, and while a
// call of ours is unanswered, reading goes on for the sake of its reply, and what comes beyond the bound is answered CodeBusy.
//
// A token bucket stops reading in the same way when it is empty. A request costs a token; its bytes, those of its reply and what its handler
// adds (Request.Cost) cost one each TokenBytes. A reply waits for room in the queue, which holds its handler's place; a notification that
// finds none is refused with ErrQueueFull, at once.
//
// # Ends
//
// Serve returns when the stream has ended, every handler has returned and no goroutine of the Conn is left; before that the
// context of handlers is cancelled and every unanswered call fails with ErrClosed. A peer that stops writing, and may still
// read, gets what is answered within a second: `printf '{…}\n' | nc -N -U socket` works. Shutdown ends a conversation in good
// order: requests that have begun are answered, new ones refused, the queue is written, then the stream is closed.
package jsonrpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// A Request is one request or notification of the peer.
type Request struct {
	Conn   *Conn
	Method string
	// ID as it came: a string, a number or null; nil of a notification.
	ID json.RawMessage
	// Params as they came: an object or an array; nil where there are none. A handler may keep them.
	Params json.RawMessage
	// After, where a handler sets it, is called once the reply is queued, for what must not be sent before it. It is called
	// when there is nothing to reply or the reply found the conversation ended, too, and does not block.
	After func()
	// Cost is set by a handler whose work is that of so many bytes, beyond the bytes of request and reply.
	Cost int64
}

// A Handler answers a request. The result is encoded as it is when it is a json.RawMessage or an Appender, otherwise by
// encoding/json; nil is null. The error becomes that of the reply: an *Error as it is, a *Fatal and the end of the
// conversation, a context.DeadlineExceeded as CodeDeadline, any other as CodeInternal with its text. What it returns for a
// notification is dropped. A panic is answered with CodeInternal and logged. ctx ends with the conversation.
type Handler func(ctx context.Context, r *Request) (result any, err error)

// An Appender writes itself as JSON.
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// Limits bound a Conn. Zero fields have the default named beside them.
type Limits struct {
	Frame        int           // bytes of a frame that comes in: 16 MiB
	Concurrent   int           // handlers at once: 64
	Waiting      int           // requests that wait for a handler: 1,024
	Allowance    int           // bytes of frames in flight that need no Budget, in and out each: 64 KiB
	Queue        int           // bytes of frames to be sent: 1 MiB; one frame always has room in an empty queue
	Rate         float64       // tokens a second: one for a request or notification, one for each TokenBytes; 0 means no bound
	Burst        int           // tokens that the bucket holds once they are saved, at least those of 20 ms; at first it has a fifth: Rate, at least 1
	WriteTimeout time.Duration // how long a frame may take to be written: 10 s
}

func (l *Limits) fill() {
	l.Frame = cmp.Or(l.Frame, DefaultFrame)
	l.Concurrent = cmp.Or(l.Concurrent, 64)
	l.Waiting = cmp.Or(l.Waiting, 1024)
	l.Allowance = cmp.Or(l.Allowance, DefaultAllowance)
	l.Queue = cmp.Or(l.Queue, 1<<20)
	l.Burst = max(1, cmp.Or(l.Burst, int(l.Rate)))
	l.WriteTimeout = cmp.Or(l.WriteTimeout, 10*time.Second)
}

const (
	// DefaultFrame is the longest frame, in bytes, where nothing else is said.
	DefaultFrame = 16 << 20
	// DefaultAllowance is how many bytes of frames a connection may hold without asking the Budget.
	DefaultAllowance = 64 << 10
	// TokenBytes are the bytes of requests and replies that cost as much as a request.
	TokenBytes = 16 << 10
	// MaxID is the longest id, in bytes with its quotes.
	MaxID = 1 << 10
)

// Options of a Conn. The zero value refuses every request and bounds everything by default.
type Options struct {
	// Handler answers requests and notifications; nil knows no method.
	Handler Handler
	// Inline says which methods are handled before the next frame is read; nil means none. Such a handler must not Call.
	Inline func(method string) bool
	Limits Limits
	// Budget is shared by all connections of a process; nil means none.
	Budget *Budget
	// IDPrefix begins the ids that NewID gives: "cb-".
	IDPrefix string
	Logger   *slog.Logger // nil is silent
	Meter    Meter
}

// Meter is told what happens. Its functions may be nil, are called by many goroutines, and do not block.
type Meter struct {
	// Handled is called when a handler has returned: its method as the peer wrote it, how long it took, the code of its
	// error or 0.
	Handled func(method string, took time.Duration, code int)
	// Refused is called for a frame that was answered without a handler, or that was dropped.
	Refused func(why Refusal)
}

// A Refusal says why a frame was not handled.
type Refusal string

// The refusals.
const (
	RefusedParse     Refusal = "parse"    // not JSON
	RefusedInvalid   Refusal = "invalid"  // no request
	RefusedBusy      Refusal = "busy"     // too many in flight
	RefusedMemory    Refusal = "memory"   // too many bytes in flight
	RefusedShutdown  Refusal = "shutdown" // shutting down
	RefusedStray     Refusal = "stray"    // a reply that nobody waits for
	RefusedQueueFull Refusal = "queue"    // a notification of ours that found no room
	RefusedSlow      Refusal = "slow"     // the peer did not read within WriteTimeout
)

// Codes of JSON-RPC 2.0, and those of the daemon's protocol (spec/agent-daemon.md).
const (
	CodeParse          = -32700 // not JSON
	CodeInvalidRequest = -32600 // JSON, but no request
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeBusy           = -32000 // too much in flight, or shutting down: try again later
	CodeAuth           = -32001 // session.auth must come first, or was wrong
	CodeDeadline       = -32004 // the handler did not end within its deadline
)

// An Error is the error of a reply: what a handler returns to choose its code, and what Call returns when the peer
// answered with one.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil for none
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Errorf makes an Error.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// A Fatal is returned by a handler whose answer is the last one: the reply is sent, then the stream is closed with Code
// and Reason.
type Fatal struct {
	Err    *Error
	Code   int
	Reason string
}

func (f *Fatal) Error() string { return f.Err.Error() }

var (
	// ErrClosed is returned by everything that needs a conversation which has ended.
	ErrClosed = errors.New("the connection is closed")
	// ErrQueueFull is returned by Notify when the peer does not read as fast as it is told things.
	ErrQueueFull = errors.New("the queue of frames to the peer is full")
	// ErrTooLong is wrapped where a frame is longer than the limit.
	ErrTooLong = errors.New("frame longer than the limit")
)

// errorOf says how an error of a handler stands in its reply.
func errorOf(err error) *Error {
	var e *Error
	var fatal *Fatal
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &fatal):
		return fatal.Err
	case errors.Is(err, context.DeadlineExceeded):
		return Errorf(CodeDeadline, "deadline exceeded: %v", err)
	}
	return Errorf(CodeInternal, "%v", err)
}

// A Stream carries frames. One goroutine reads, another writes, any may close.
type Stream interface {
	// Read returns the next frame, whose memory is the caller's, and how many bytes of the Budget it holds, which the caller
	// gives back. It returns io.EOF when the peer writes no more but may still read; a *CloseError when the peer closed the
	// stream, or broke a rule (Ours): then the caller closes it with that code; ErrTooLong (wrapped) and another error otherwise.
	// After an error it is not called again. Close makes it return.
	Read() (frame []byte, held int64, err error)
	// Write sends one frame. Where more is true another Write follows at once, and the stream may hold the frame until then.
	Write(frame []byte, more bool) error
	// Short(true) has Read take no frame above DefaultAllowance, and so nothing of a Budget, from the next one on: a longer one
	// ends the stream with ClosePolicy. Short(false) lifts that. It is called before Read, or by the goroutine that reads.
	Short(only bool)
	// Close ends the stream: in good order with a code of RFC 6455 and a reason of at most 123 bytes, where it has such a
	// thing; at once with code 0, which also ends a Close that takes its time. It is harmless when repeated.
	Close(code int, reason string) error
}

// Close codes of RFC 6455 that are used here.
const (
	CloseNormal      = 1000
	CloseGoingAway   = 1001 // shutting down
	CloseProtocol    = 1002
	CloseUnsupported = 1003 // a binary frame
	CloseNoCode      = 1005 // the peer gave no code; never sent
	CloseNotUTF8     = 1007
	ClosePolicy      = 1008 // not authenticated, or too slow
	CloseTooLong     = 1009
	CloseTryAgain    = 1013 // no memory left for a frame of that length
)

// ErrShort is what Read returns for a long frame after Short(true).
var ErrShort = &CloseError{Code: ClosePolicy, Reason: "not authenticated: no frame above 64 KiB", Ours: true}

// A CloseError says how a stream was closed by the other side, or why this one has to close it.
type CloseError struct {
	Code   int
	Reason string
	Ours   bool
}

func (e *CloseError) Error() string { return fmt.Sprintf("closed with %d: %s", e.Code, e.Reason) }

// clean reports whether the stream was closed in good order.
func (e *CloseError) clean() bool {
	return e.Code == CloseNormal || e.Code == CloseGoingAway || e.Code == CloseNoCode
}
