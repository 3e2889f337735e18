package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// ErrLost is the error of a call whose connection was lost before its answer came: whether it was done is not known.
var ErrLost = errors.New("the connection to the daemon was lost before its answer came: whether it was done is in the trace")

// ErrToken is the error of Dial, or of a connection that is made again, when the daemon does not take the token.
var ErrToken = errors.New("the daemon does not take the token")

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("the client is closed: dial again")

// ErrNotFound is the error of a trace of a run that is not there, or not the caller's to read.
var ErrNotFound = errors.New("no such run for this agent: look at Runs, or read as the host")

// A Code is the code of an Error. It is an error itself, for errors.Is.
type Code int

// The codes of the daemon's errors.
const (
	InvalidRequest Code = rpcapi.CodeInvalidRequest
	MethodNotFound Code = rpcapi.CodeMethodNotFound
	InvalidParams  Code = rpcapi.CodeInvalidParams
	Internal       Code = rpcapi.CodeInternal
	Busy           Code = rpcapi.CodeBusy // too much of this connection in flight, or shutting down: try again later
	AuthRequired   Code = rpcapi.CodeAuthRequired
	Approval       Code = rpcapi.CodeApproval // denied by a person, or nobody answered in time
	Deadline       Code = rpcapi.CodeDeadline
	Version        Code = rpcapi.CodeVersion
)

func (c Code) Error() string { return fmt.Sprintf("the daemon refuses with code %d", int(c)) }

// An Error is what the daemon replied instead of a result.
type Error struct {
	Method  string
	Code    Code
	Message string          // for people
	Data    json.RawMessage // nil where there is none
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (code %d)", e.Method, e.Message, int(e.Code))
}

// Is tells whether target is the code of e.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// A DroppedError says that a batch of turns was not recorded, none of it.
type DroppedError struct {
	RunID  string
	Reason string // run_not_found, run_terminal, run_turn_limit or turn_too_large
}

func (e *DroppedError) Error() string {
	return fmt.Sprintf("no turn of the batch was recorded in run %s: %s", e.RunID, e.Reason)
}

// A CancelledError is the cause of a tool's context that the daemon cancelled.
type CancelledError struct{ Reason string }

func (e *CancelledError) Error() string { return "the daemon cancelled the call: " + e.Reason }
