package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
