package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// session is one connection: who it is, its tools, policies and state, and which runs it holds open. All of it but the runs
// ends with the connection.
type session struct {
	d      *Daemon
	id     string
	conn   *jsonrpc.Conn
	stream jsonrpc.Stream // of conn
	log    *slog.Logger
	state  *proposal.State
	room   *quota        // bytes of tools, policies, state and results
	long   chan struct{} // holds one while a long reply is made: see alone
	authed atomic.Bool   // who.authed, for the gate before every request

	mu       sync.Mutex
	who      identity
	attempts int              // wrong tokens so far
	client   string           // what its client calls itself; "" for nothing
	tools    map[string]*tool // its client's
	policies scopes
	held     map[string]runtrace.ID   // open runs that it started, by run id
	current  runtrace.ID              // the run whose turns its tool calls become; zero is none
	subs     map[string]*subscription // by run id; nil when the session is over
	repeats  repeats                  // submissions that may come again
}

func newSession(d *Daemon, stream jsonrpc.Stream, log *slog.Logger) *session {
	s := &session{
		d: d, id: "sess-" + newUUID(), stream: stream, long: make(chan struct{}, 1), room: &quota{most: int64(d.o.Limits.SessionBytes), up: d.room},
		held: make(map[string]runtrace.ID), subs: make(map[string]*subscription),
	}
	s.log = log.With("session", s.id)
	s.state, s.repeats.room = &proposal.State{Room: s.room.take}, s.room
	s.who.open = d.o.NoAuth
	s.authed.Store(d.o.NoAuth)
	stream.Short(!d.o.NoAuth) // who may be anybody takes no memory from those who are known
	s.conn = jsonrpc.New(stream, &jsonrpc.Options{
		Handler: s.handle, Inline: isInline, Limits: d.wireLimits(), Budget: d.budget, Logger: s.log,
		Meter: d.meter(),
	})
	return s
}

// serve converses until the connection ends or ctx does. When it returns nothing of the session runs any more, and its runs
// are in their grace.
func (s *session) serve(ctx context.Context) error {
	stop := s.expectAuth()
	err := s.conn.Serve(ctx)
	stop()
	s.d.supervision.watch(s, nil).stop()
	s.mu.Lock()
	subs, held := s.subs, s.held
	s.subs, s.held = nil, nil
	s.mu.Unlock()
	for _, sub := range subs {
		sub.stop()
	}
	for _, id := range held {
		s.d.runs.release(id, s)
	}
	s.room.drop()
	return err
}

// scopeOf is the scope of policies that a client names: the id that session.init gave is the connection's own.
func (s *session) scopeOf(id string) string {
	if id == s.id {
		return ""
	}
	return id
}

// storeFailed says in the log what failed and why, and to the client what. That the client went away meanwhile is no failure.
func (s *session) storeFailed(what, run string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	s.log.Error(what, "run", run, "error", err)
	return failed("%s: the daemon's store failed, and its log says why", what)
}
