package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// A link is one connection: a conversation and what belongs to it alone. Its goroutine ends with the conversation; close waits
// for it.
type link struct {
	c      *Client
	conn   *jsonrpc.Conn
	over   chan struct{} // closed when nothing of the conversation runs any more
	err    error         // why it ended, nil for good order; to be read when over is closed
	server string        // the version of the daemon, set before anybody else has the link
	calls  calls

	intents intents
	turn    chan struct{} // holds one token: whoever has it subscribes or unsubscribes

	mu      sync.Mutex
	watches map[string][]*watch // by run
}

// maxTools bounds the tools that run at once for one connection. The daemon bounds what it asks of a client below that; what is
// above it would be refused, and not wait, for a tool that waits could be the one that others wait for.
const maxTools = 1 << 14

// failed is the code of a tool's own failure.
const failed = -32000

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

// close ends the conversation and waits until nothing of it runs.
func (l *link) close() {
	l.conn.Close(jsonrpc.CloseNormal, "")
	<-l.over
}

func (l *link) dead() bool {
	select {
	case <-l.over:
		return true
	default:
		return l.conn.Context().Err() != nil
	}
}

// cause is why the conversation ended, once it has.
func (l *link) cause() error {
	if l.err == nil {
		return errors.New("the daemon ended it")
	}
	return l.err
}

// call calls a method over this connection. What it says is in the comment of the package.
func (l *link) call(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	err := l.conn.Call(ctx, l.conn.NewID(), method, params, &raw)
	refused := (*jsonrpc.Error)(nil)
	switch {
	case errors.As(err, &refused):
		return &Error{Method: method, Code: Code(refused.Code), Message: refused.Message, Data: refused.Data}
	case errors.Is(err, jsonrpc.ErrClosed):
		<-l.conn.Context().Done() // so that the next call does not take this connection
		return fmt.Errorf("%s: %w", method, ErrLost)
	case err != nil:
		return fmt.Errorf("%s: %w", method, err)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("%s: the daemon's result is not of the protocol's shape: %w", method, err)
	}
	return nil
}

// handle answers the daemon. All but tools.execute is handled while the next frame waits, so that it keeps its order.
func (l *link) handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	switch r.Method {
	case rpcapi.ToolsExecute:
		return l.execute(ctx, r.Params)
	case rpcapi.ToolsCancel:
		var p rpcapi.ToolsCancelParams
		if err := json.Unmarshal(r.Params, &p); err == nil {
			l.calls.cancel(p.RequestID, p.Reason)
		}
	case rpcapi.RunsTraceEvent:
		var p rpcapi.RunsTraceEventParams
		if err := json.Unmarshal(r.Params, &p); err == nil {
			l.each(p.RunID, func(w *watch) { w.put(p.Record) })
		}
	case rpcapi.RunsTraceLost:
		var p rpcapi.RunsTraceLostParams
		if err := json.Unmarshal(r.Params, &p); err == nil {
			l.each(p.RunID, (*watch).lose)
		}
	case rpcapi.SupervisionIntent:
		var in rpcapi.Intent
		if err := json.Unmarshal(r.Params, &in); err == nil {
			l.intents.put(in)
		}
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "unknown method: %s", r.Method)
	}
	return nil, nil
}

func (l *link) execute(ctx context.Context, params json.RawMessage) (any, error) {
	var p rpcapi.ToolsExecuteParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid params: %v", err)
	}
	ctx, end := l.calls.begin(ctx, p.RequestID)
	defer end()
	output, err := l.c.tools.run(ctx, &p, l.c.log)
	if err != nil {
		return nil, jsonrpc.Errorf(failed, "%v", err)
	}
	b, err := json.Marshal(output)
	if err != nil {
		return nil, jsonrpc.Errorf(failed, "output of %s: %v", p.Tool, err)
	}
	return json.RawMessage(b), nil
}

// unsubscribeTimeout is how long the end of a subscription may take.
const unsubscribeTimeout = 5 * time.Second

// subscribe makes a place where the events of a run wait, and asks the daemon for them. The place is there before the daemon
// knows of it, so that no event finds none. end must be called when the error is nil.
func (l *link) subscribe(ctx context.Context, run string) (w *watch, end func(), err error) {
	select {
	case l.turn <- struct{}{}: // else an unsubscribe could overtake a subscribe to the same run
		defer func() { <-l.turn }()
	case <-l.over:
		return nil, nil, ErrLost
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	w = &watch{over: l.over, some: make(chan struct{}, 1)}
	l.mu.Lock()
	l.watches[run] = append(l.watches[run], w)
	l.mu.Unlock()
	if err := l.call(ctx, rpcapi.RunsSubscribe, rpcapi.RunParams{RunID: run}, nil); err != nil {
		l.forget(run, w)
		return nil, nil, err
	}
	l.each(run, func(other *watch) {
		if other != w {
			other.lose() // the daemon began anew: what was on its way to the others may be gone
		}
	})
	return w, func() { l.unsubscribe(run, w) }, nil
}

func (l *link) unsubscribe(run string, w *watch) {
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeTimeout)
	defer cancel()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-l.over:
		return
	}
	if l.forget(run, w) {
		_ = l.call(ctx, rpcapi.RunsUnsubscribe, rpcapi.RunParams{RunID: run}, nil) // lost: then it is unsubscribed
	}
}

// forget takes a place away, and tells whether it was the last of its run.
func (l *link) forget(run string, w *watch) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := slices.DeleteFunc(l.watches[run], func(o *watch) bool { return o == w })
	if l.watches[run] = left; len(left) == 0 {
		delete(l.watches, run)
	}
	return len(left) == 0
}

// each does something with every place of a run.
func (l *link) each(run string, do func(*watch)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches[run] {
		do(w)
	}
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
func socketPath(path string) string {
	if strings.HasPrefix(path, "//") {
		return strings.TrimPrefix(path, "//")
	}
	return path
}

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
