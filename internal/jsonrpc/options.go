package jsonrpc

import (
	"cmp"
	"context"
	"encoding/json"
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
	Rate         float64       // requests and notifications a second: 0 means no bound
	Burst        int           // tokens that the bucket holds: Rate, at least 1
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

func (c *Conn) refused(why Refusal) {
	if c.o.Meter.Refused != nil {
		c.o.Meter.Refused(why)
	}
}
