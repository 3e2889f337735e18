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
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
	"github.com/tapedeck-dev/tapedeck/internal/version"
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

// dial makes a connection that nobody is known on yet.
func (c *Client) dial(ctx context.Context) (*link, error) {
	stream, err := dialStream(ctx, c.url, c.o.MaxFrame)
	if err != nil {
		return nil, err
	}
	l := &link{c: c, over: make(chan struct{}), turn: make(chan struct{}, 1), watches: make(map[string][]*watch), intents: intents{some: make(chan struct{}, 1)}}
	l.conn = jsonrpc.New(stream, &jsonrpc.Options{
		Handler:  l.handle,
		Inline:   func(method string) bool { return method != rpcapi.ToolsExecute },
		Limits:   jsonrpc.Limits{Frame: c.o.MaxFrame, Concurrent: maxTools},
		IDPrefix: "c-",
		Logger:   c.log,
	})
	go func() {
		defer close(l.over)
		l.err = l.conn.Serve(context.Background())
	}()
	return l, nil
}

// Pauses between attempts to connect grow from the first to the last, each cut short by up to half so that the clients of a daemon
// that was restarted do not come all at once.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
	tryTimeout = 15 * time.Second
)

// keep waits for the connection to be lost and makes another, until the client closes. It is the one goroutine of a client that
// outlives a call; Close waits for it.
func (c *Client) keep(l *link) {
	defer c.kept.Done()
	for l != nil {
		select {
		case <-l.over:
			l.close()
		case <-c.ctx.Done():
			c.set(nil, ErrClosed, true)
			l.close()
			return
		}
		c.log.Warn("connection to the daemon lost", "url", c.url, "cause", l.cause())
		if c.o.Patience < 0 {
			c.set(nil, fmt.Errorf("%w: %w", ErrLost, l.cause()), true)
			return
		}
		c.set(nil, l.cause(), false)
		l = c.again()
	}
}

// again makes another connection; nil when the client closed, or the daemon will never let it in.
func (c *Client) again() *link {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case <-c.ctx.Done():
			c.set(nil, ErrClosed, true)
			return nil
		case <-time.After(pause - rand.N(pause/2)):
		}
		ctx, cancel := context.WithTimeout(c.ctx, tryTimeout)
		l, err := c.connect(ctx)
		cancel()
		if err == nil {
			c.log.Info("connected to the daemon again", "url", c.url)
			c.set(l, nil, false)
			return l
		}
		final := errors.Is(err, Version) || c.o.Token != "" && errors.Is(err, ErrToken)
		c.set(nil, err, final)
		if final {
			return nil
		}
	}
}

// connect makes a connection and everything on it that belongs to one.
func (c *Client) connect(ctx context.Context) (*link, error) {
	l, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.restore(ctx, l); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// restore authenticates, agrees on the protocol, registers tools and policies and starts open runs again.
func (c *Client) restore(ctx context.Context, l *link) error {
	if err := c.authenticate(ctx, l); err != nil {
		return err
	}
	hello := rpcapi.HandshakeParams{ProtocolVersion: rpcapi.ProtocolVersion, ClientVersion: c.o.Version}
	if hello.ClientVersion == "" {
		hello.ClientVersion = "tapedeck " + version.Version
	}
	var res rpcapi.HandshakeResult
	if err := l.call(ctx, rpcapi.ServerHandshake, hello, &res); err != nil {
		return err
	}
	l.server = res.ServerVersion
	if tools := c.tools.list(); len(tools) > 0 {
		if err := l.call(ctx, rpcapi.ToolsRegister, tools, nil); err != nil {
			return err
		}
	}
	c.mu.Lock()
	policies, runs := slices.Clone(c.policies), slices.Clone(c.runs)
	c.mu.Unlock()
	for _, p := range policies {
		if err := l.call(ctx, rpcapi.PolicyRegister, p, nil); err != nil {
			return err
		}
	}
	for _, r := range runs {
		if err := l.call(ctx, rpcapi.RunsStart, r.params, nil); err != nil {
			return err
		}
	}
	return nil
}

// authenticate sends the token where there is one. Without one a daemon that wants one says so at the next call.
func (c *Client) authenticate(ctx context.Context, l *link) error {
	text, file, err := c.token()
	if err != nil {
		return err
	}
	p := rpcapi.SessionAuthParams{Token: text, AgentID: c.o.AgentID}
	if c.o.Host {
		p = rpcapi.SessionAuthParams{HostToken: text}
	}
	if p == (rpcapi.SessionAuthParams{}) {
		return nil
	}
	switch err := l.call(ctx, rpcapi.SessionAuth, p, nil); {
	case err == nil || errors.Is(err, ErrLost):
		return err
	case text == "":
		return fmt.Errorf("%w: none was given and there is none in %s: %w", ErrToken, file, err)
	default:
		return fmt.Errorf("%w: %w", ErrToken, err)
	}
}

// dialStream connects to a URL of the kinds that the comment of the package lists.
func dialStream(ctx context.Context, place string, limit int) (jsonrpc.Stream, error) {
	if path, ok := strings.CutPrefix(place, "unix:"); ok {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socketPath(path))
		if err != nil {
			return nil, err
		}
		return jsonrpc.NewLines(conn, limit, nil), nil
	}
	u, err := url.Parse(place)
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" {
		return nil, fmt.Errorf("want a URL like ws://127.0.0.1:9100 or unix:/path/to/socket, got %q", place)
	}
	stream, err := websock.Dial(ctx, place, &websock.Options{Limit: limit})
	if err != nil {
		return nil, err
	}
	return stream, nil
}

// socketPath takes unix:PATH and unix://PATH.
func socketPath(path string) string { return strings.TrimPrefix(path, "//") }

// token gives what is to be sent, "" where there is none, and the file that it was looked for in. It is read at each connection:
// every start of a daemon makes another.
func (c *Client) token() (text, file string, err error) {
	switch {
	case c.o.Token != "":
		return c.o.Token, "", nil
	case c.o.TokenFile != "":
		b, err := os.ReadFile(c.o.TokenFile)
		if err != nil {
			return "", c.o.TokenFile, fmt.Errorf("token: %w", err)
		}
		return strings.TrimSpace(string(b)), c.o.TokenFile, nil
	}
	addr := c.url
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		addr = "unix:" + socketPath(path)
	}
	if file, err = token.File("", addr, c.o.Host); err != nil {
		return "", "", nil //nolint:nilerr // an address that no daemon of this machine has: it may want no token
	}
	text, err = token.Read("", addr, c.o.Host)
	if errors.Is(err, fs.ErrNotExist) {
		return "", file, nil
	}
	return text, file, err
}
