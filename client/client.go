package client

import (
	"context"
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
