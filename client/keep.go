package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

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
