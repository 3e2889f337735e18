// Package client speaks to a daemon (tapedeck serve): it starts runs and records their turns, submits proposals and serves the
// tools that the daemon calls back, follows traces.
//
//	c, err := client.Dial(ctx, "ws://127.0.0.1:9100", &client.Options{AgentID: "coder", Tools: []client.Tool{read}})
//	run, err := c.Start(ctx, rpcapi.RunsStartParams{Intent: "fix the build"})
//	result, err := c.Submit(ctx, &rpcapi.Proposal{Actions: []rpcapi.Action{{Type: "tool_call", Tool: "read", …}}})
//	err = run.Complete(ctx, rpcapi.Outcome{Status: "success"})
//
// Goals: every method of the daemon, typed by package rpcapi; tools as Go functions; a connection that is made again when it is
// lost; traces without a gap and without a duplicate.
//
// Non-goals: it decides nothing and keeps nothing. What a tool may do is decided by the daemon, what happened is kept by it.
//
// # Addresses and tokens
//
// A URL is ws://HOST:PORT (wss:// behind a proxy that ends TLS), or unix:PATH for a daemon's socket. A daemon on this machine
// leaves its token where only its own user can read it; Dial finds it by the URL, and reads it again at each connection, for
// every start of a daemon has another. Options.Token is for a daemon elsewhere. Options.Host asks for the host's token: it reads
// the runs of every agent and writes none.
//
// # Tools
//
// A tool is called in a goroutine of its own while calls of the program are in flight, and several at once. Its context ends
// when the daemon cancels the call (context.Cause is then a *CancelledError), when its deadline has passed, and when the
// connection is lost. What it returns is the output as it is; what it returns as an error, or panics with, is the failure.
//
// # Connections that are lost
//
// Tools, policies and state belong to a connection, runs outlive it. When a connection is lost the client makes another, with
// growing pauses, until Close. Before anything else it authenticates, registers its tools and its global policies again, and
// starts its open runs again by their ids, so that a daemon that waits for them (serve --grace) does not end them as incomplete.
// State that was set, and policy sessions, are gone: a policy that requires state denies until it is set again.
//
// A call made while there is no connection waits for one, at most Options.Patience. A call that was in flight when the connection
// was lost fails with ErrLost, and is never sent twice: whether it was done is in the trace. Subscribe goes on where it was.
//
// # Ordering
//
// Calls of one goroutine arrive in its order. Calls of several goroutines, and tools called back, have none. Records of a
// subscription come in the order of the run's file.
//
// # Errors
//
// What the daemon refuses is an *Error; errors.Is tells its code: errors.Is(err, client.AuthRequired). A batch of turns that was
// not recorded is a *DroppedError, a run that is not there, or not one's own, ErrNotFound. What was taken back from a tool is
// never an error of a call: it is in the result.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A Client is connected to a daemon. It is safe for use by several goroutines.
type Client struct {
	url string
	o   Options
	log *slog.Logger

	ctx   context.Context // of everything that the client started: done when it closes
	stop  context.CancelFunc
	kept  sync.WaitGroup // of keep, the one goroutine that makes connections after the first
	tools tools

	mu       sync.Mutex
	link     *link                         // nil while there is no connection
	why      error                         // why there is none
	over     bool                          // and there will be none
	changed  chan struct{}                 // closed when one of these three changes, and replaced
	policies []rpcapi.PolicyRegisterParams // global ones, in the order of their registration
	runs     []*Run                        // open, in the order of their start
}

// Dial connects to the daemon at url: see the comment of the package for what a url is. It fails where nobody answers there,
// where the token is wrong, and where the daemon speaks another version of the protocol. The context is for connecting alone.
// Close must be called.
func Dial(ctx context.Context, url string, o *Options) (*Client, error) {
	c := &Client{url: url, o: o.filled(), changed: make(chan struct{})}
	c.log = c.o.Logger
	if err := c.tools.add(c.o.Tools); err != nil {
		return nil, err
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	l, err := c.connect(ctx)
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("daemon at %s: %w", url, err)
	}
	c.set(l, nil, false)
	c.kept.Add(1)
	go c.keep(l)
	return c, nil
}

// Close ends the connection and waits for its goroutines, tools that run included: their contexts end. Runs that are open stay
// open for the daemon's grace and end as incomplete. Closing twice is fine.
func (c *Client) Close() error {
	c.stop()
	c.kept.Wait()
	return nil
}

// Server is the version that the daemon named at the connection of now, "" while there is none.
func (c *Client) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return ""
	}
	return c.link.server
}

// Call calls any method. Params of nil are none, a result of nil is dropped. The errors are those that the comment of the
// package lists, and that of the context.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	l, err := c.linked(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return l.call(ctx, method, params, result)
}

// linked waits for a connection, at most Options.Patience.
func (c *Client) linked(ctx context.Context) (*link, error) {
	var late <-chan time.Time
	for {
		c.mu.Lock()
		l, why, over, changed := c.link, c.why, c.over, c.changed
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil:
			return nil, ErrClosed
		case l != nil && !l.dead():
			return l, nil
		case over:
			return nil, why
		}
		if late == nil && c.o.Patience > 0 {
			timer := time.NewTimer(c.o.Patience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-changed:
		case <-late:
			if why == nil {
				why = ErrLost // just now
			}
			return nil, fmt.Errorf("no connection to the daemon at %s within %s: %w", c.url, c.o.Patience, why)
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), why)
		}
	}
}

// set notes the connection of now, or why there is none.
func (c *Client) set(l *link, why error, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link, c.why, c.over = l, why, over
	close(c.changed)
	c.changed = make(chan struct{})
}

// Options of Dial. Nil and the zero value work: the token of a daemon on this machine, no agent, no tools.
type Options struct {
	// Token is sent as it is. "" reads TokenFile.
	Token string
	// TokenFile holds the token. "" is where the daemon of the URL keeps its own; one that is not there is no error, for a daemon
	// without authentication has none.
	TokenFile string
	// Host asks for the host's role: the token is the host's.
	Host bool
	// AgentID binds the connection to that agent. "" leaves it to each run.
	AgentID string

	// Tools are registered before Dial returns. RegisterTools adds to them.
	Tools []Tool

	// Patience is how long a call waits for a connection that was lost to be made again. 0 is 10 s; less than 0 makes none again:
	// what was lost stays lost.
	Patience time.Duration
	// MaxFrame is the longest message taken from the daemon, in bytes. 0 is 64 MiB, as the public protocol has it.
	MaxFrame int
	// Version names the program to the daemon. "" is that of this library.
	Version string
	// Logger is told of connections that are lost and made again, and of tools that panic. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultPatience = 10 * time.Second
	defaultMaxFrame = 64 << 20 // a reply of runs.get_trace has up to 32 MiB of records
)

// filled is o with its defaults.
func (o *Options) filled() Options {
	var f Options
	if o != nil {
		f = *o
	}
	if f.Patience == 0 {
		f.Patience = defaultPatience
	}
	if f.MaxFrame == 0 {
		f.MaxFrame = defaultMaxFrame
	}
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
	return f
}

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
