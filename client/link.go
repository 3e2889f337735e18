package client

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A link is one connection.
type link struct {
	over   chan struct{} // closed when the conversation has ended and nothing of it is left
	server string        // the version of the daemon, set before anybody else has the link
	calls  calls

	mu      sync.Mutex
	watches map[string][]*watch // by run
}

func (c *Client) dial(context.Context) (*link, error) { return nil, errors.New("not built yet") }

func (c *Client) token() (text, file string, err error) { return c.o.Token, c.o.TokenFile, nil }

func (l *link) call(ctx context.Context, method string, params, result any) error { return ErrLost }

func (l *link) close() {}

func (l *link) cause() error { return nil }

func (l *link) dead() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// watch makes a place where the events of a run wait.
func (l *link) watch(run string) *watch {
	w := &watch{run: run, over: l.over, some: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watches == nil {
		l.watches = make(map[string][]*watch)
	}
	l.watches[run] = append(l.watches[run], w)
	return w
}

func (l *link) unwatch(w *watch) {}

// each does something with every watch of a run.
func (l *link) each(run string, do func(*watch)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches[run] {
		do(w)
	}
}

func (l *link) event(p *rpcapi.RunsTraceEventParams) {
	record := json.RawMessage(p.Record)
	l.each(p.RunID, func(w *watch) { w.put(record) })
}

var _ = (&calls{}).begin
var _ = failure
var _ = (*tools).run
