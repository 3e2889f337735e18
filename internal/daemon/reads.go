package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// maxTraceBytes bounds the records of one reply of runs.get_trace, where the rest comes with a cursor, and of runs.subscribe,
// where runs.trace.lost names the rest: clients of the protocol take no message of more than 64 MiB.
const maxTraceBytes = 32 << 20

func runsList(ctx context.Context, s *session, p *rpcapi.RunsListParams) (any, error) {
	agent, err := s.listed(p.AgentID)
	if err != nil {
		return nil, err
	}
	runs, err := s.d.store.List(ctx, agent)
	if err != nil {
		return nil, s.storeFailed("the runs could not be listed", "", err)
	}
	if p.Limit > 0 && len(runs) > p.Limit {
		runs = runs[:p.Limit]
	}
	if runs == nil {
		runs = []store.Summary{}
	}
	return runList{agent, runs}, nil
}

// runList is rpcapi.RunsListResult with the runs as they are kept.
type runList struct {
	AgentID string          `json:"agent_id"`
	Runs    []store.Summary `json:"runs"`
}

// notFound is the reply of runs.get_trace about a run that is not there, or not the caller's to read.
type notFound struct {
	RunID    string `json:"run_id"`
	NotFound bool   `json:"not_found"`
}

func runsGetTrace(ctx context.Context, s *session, p *rpcapi.RunsGetTraceParams) (any, error) {
	if p.Cursor < 0 {
		return nil, badParams("cursor: want the index of a record, from 0, got %d", p.Cursor)
	}
	id, err := s.readable(ctx, p.RunID)
	switch {
	case errors.Is(err, errNoRun):
		return notFound{p.RunID, true}, nil
	case err != nil:
		return nil, err
	}
	trace, err := s.d.store.Trace(ctx, id, &store.TraceOptions{From: p.Cursor, MaxBytes: maxTraceBytes})
	if errors.Is(err, store.ErrNotFound) {
		return notFound{p.RunID, true}, nil
	}
	if err != nil {
		return nil, s.storeFailed("the trace could not be read", id.Run, err)
	}
	return &traced{trace, p.Cursor}, nil
}

// traced is rpcapi.RunsGetTraceResult without reflection.
type traced struct {
	*store.Trace
	cursor int
}

func (t *traced) AppendJSON(dst []byte) ([]byte, error) {
	dst = jsonscan.AppendText(append(dst, `{"run_id":`...), t.ID.Run)
	dst = jsonscan.AppendText(append(dst, `,"agent_id":`...), t.ID.Agent)
	dst = appendLines(append(dst, `,"records":`...), t.Records)
	dst = strconv.AppendInt(append(dst, `,"cursor":`...), int64(t.cursor), 10)
	dst = strconv.AppendInt(append(dst, `,"next":`...), int64(t.Next), 10)
	if t.More {
		dst = append(dst, `,"more":true`...)
	}
	dst = jsonscan.AppendText(append(dst, `,"status":`...), string(t.Status))
	return append(dst, '}'), nil
}

func appendLines(dst []byte, lines [][]byte) []byte {
	dst = append(dst, '[')
	for i, line := range lines {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, line...)
	}
	return append(dst, ']')
}

// verdicts is rpcapi.RunsVerdictsResult with the verdicts as they were kept.
type verdicts struct {
	RunID    string            `json:"run_id"`
	AgentID  string            `json:"agent_id"`
	Verdicts []json.RawMessage `json:"verdicts"`
}

func runsVerdicts(ctx context.Context, s *session, p *rpcapi.RunParams) (any, error) {
	id, err := s.readable(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	list, err := s.d.store.Verdicts(ctx, id)
	if err != nil {
		return nil, s.storeFailed("the verdicts could not be read", id.Run, err)
	}
	if list == nil {
		list = []json.RawMessage{}
	}
	return verdicts{id.Run, id.Agent, list}, nil
}

// subscription hands the records of one run to one connection. One goroutine does it, from the reply to runs.subscribe to the
// run's end, runs.unsubscribe, another runs.subscribe of the same run, or the end of the connection; session.serve stops and
// waits for those that are left.
type subscription struct {
	events *store.Subscription
	cancel context.CancelFunc
	begun  chan struct{} // closed when the reply is queued
	done   chan struct{} // closed when its goroutine has ended
}

// stop ends a subscription and waits for its goroutine.
func (u *subscription) stop() {
	u.cancel()
	u.events.Close()
	<-u.done
}

func runsSubscribe(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
	var p rpcapi.RunParams
	if err := read(r.Params, &p); err != nil {
		return nil, err
	}
	id, err := s.readable(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	if !s.d.follows.take(1) {
		return nil, failed("the daemon has no room for another subscription: try again later")
	}
	events, err := s.d.store.Subscribe(ctx, id, &store.SubscribeOptions{
		MaxEvents: 1024, MaxBytes: 128 << 10, MaxSnapshot: maxTraceBytes})
	if err != nil {
		s.d.follows.take(-1)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, errNoRun
	}
	if err != nil {
		return nil, s.storeFailed("the run cannot be followed", id.Run, err)
	}
	u := &subscription{events: events, begun: make(chan struct{}), done: make(chan struct{})}
	if err := s.subs.put(id.Run, u); err != nil {
		events.Close()
		s.d.follows.take(-1)
		return nil, err
	}
	r.After = func() {
		events.Turns = nil // the reply has them: they are not kept as long as the subscription
		close(u.begun)
	}
	return &subscribed{events}, nil
}

// subscriptions are those of one connection.
type subscriptions struct {
	d    *Daemon
	conn *jsonrpc.Conn

	mu    sync.Mutex
	byRun map[string]*subscription // guarded by mu; nil when the session is over
}

// put puts u in the place of an earlier subscription to the same run and starts it.
func (s *subscriptions) put(run string, u *subscription) error {
	s.mu.Lock()
	earlier := s.byRun[run]
	if earlier == nil && len(s.byRun) >= s.d.o.Limits.Subscriptions {
		s.mu.Unlock()
		return failed("a connection follows at most %d runs: unsubscribe from some", s.d.o.Limits.Subscriptions)
	}
	var ctx context.Context
	ctx, u.cancel = context.WithCancel(s.conn.Context())
	s.byRun[run] = u
	s.mu.Unlock()
	go s.follow(ctx, run, u)
	if earlier != nil {
		earlier.stop()
	}
	return nil
}

// follow hands events on, in order. A client that does not read holds this goroutine, until jsonrpc drops it, and nobody else:
// what its store.Subscription cannot hold meanwhile is lost to it, and it is told from where to catch up.
func (s *subscriptions) follow(ctx context.Context, run string, u *subscription) {
	defer close(u.done)
	defer s.d.follows.take(-1)
	defer u.events.Close()
	defer u.cancel()
	select {
	case <-u.begun:
	case <-ctx.Done():
		return
	}
	for {
		e, err := u.events.Next(ctx)
		if err != nil {
			break
		}
		if err := s.send(ctx, u.events, &e); err != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRun[run] == u {
		delete(s.byRun, run)
	}
}

// stop ends all, and waits for their goroutines.
func (s *subscriptions) stop() {
	s.mu.Lock()
	all := s.byRun
	s.byRun = nil
	s.mu.Unlock()
	for _, u := range all {
		u.stop()
	}
}

func (s *subscriptions) send(ctx context.Context, u *store.Subscription, e *store.Event) error {
	if e.Lost > 0 {
		s.d.metrics.lost.Add(e.Lost)
		return s.conn.NotifyWait(ctx, rpcapi.RunsTraceLost,
			rpcapi.RunsTraceLostParams{RunID: u.ID.Run, AgentID: u.ID.Agent, Cursor: e.From, Lost: e.Lost})
	}
	s.d.metrics.events.Inc()
	return s.conn.NotifyWait(ctx, rpcapi.RunsTraceEvent, &traceEvent{u, e})
}

func runsUnsubscribe(_ context.Context, s *session, p *rpcapi.RunParams) (any, error) {
	if p.RunID == "" {
		return nil, badParams("run_id is required")
	}
	s.subs.mu.Lock()
	u := s.subs.byRun[p.RunID]
	delete(s.subs.byRun, p.RunID)
	s.subs.mu.Unlock()
	if u != nil {
		u.stop()
	}
	return rpcapi.RunsUnsubscribeResult{RunID: p.RunID, Removed: u != nil}, nil
}

// subscribed is rpcapi.RunsSubscribeResult without reflection.
type subscribed struct{ u *store.Subscription }

func (r *subscribed) AppendJSON(dst []byte) ([]byte, error) {
	dst = jsonscan.AppendText(append(dst, `{"run_id":`...), r.u.ID.Run)
	dst = jsonscan.AppendText(append(dst, `,"agent_id":`...), r.u.ID.Agent)
	dst = appendLines(append(dst, `,"turns_so_far":`...), r.u.Turns)
	dst = strconv.AppendInt(append(dst, `,"cursor":`...), int64(r.u.Cursor), 10)
	dst = jsonscan.AppendText(append(dst, `,"status":`...), string(r.u.Status))
	return append(dst, '}'), nil
}

// traceEvent is rpcapi.RunsTraceEventParams without reflection.
type traceEvent struct {
	u *store.Subscription
	e *store.Event
}

func (t *traceEvent) AppendJSON(dst []byte) ([]byte, error) {
	dst = jsonscan.AppendText(append(dst, `{"run_id":`...), t.u.ID.Run)
	dst = jsonscan.AppendText(append(dst, `,"agent_id":`...), t.u.ID.Agent)
	dst = append(append(dst, `,"record":`...), t.e.Record...)
	dst = strconv.AppendInt(append(dst, `,"cursor":`...), int64(t.e.Cursor), 10)
	dst = jsonscan.AppendText(append(dst, `,"status":`...), string(t.e.Status))
	return append(dst, '}'), nil
}
