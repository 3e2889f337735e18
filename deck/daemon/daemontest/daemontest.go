// Package daemontest is a daemon in memory for tests, which fails as it is told.
package daemontest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// ErrGone is what a connection fails with.
var ErrGone = errors.New("gone")

// A Daemon takes runs in memory, and fails as it is told.
type Daemon struct {
	Told chan struct{} // gets a value after each batch

	mu       sync.Mutex
	runs     map[string]*Run
	order    []string
	Away     bool                // every call fails
	Hang     chan struct{}       // every call waits for it; nil for none
	Before   int                 // so many batches fail before they are recorded
	After    int                 // so many batches fail after they were recorded
	Refuse   func(string) string // why a batch of this size is dropped
	Full     int                 // so many turns a run takes; 0 for any
	denied   string              // a tool
	Judged   []string            // tool and parameters
	Unknown  bool                // there is no policy.check
	Sessions int
}

// A Run is a run of a FakeDaemon.
type Run struct {
	Start   rpcapi.RunsStartParams
	Turns   []runtrace.Turn
	Outcome *rpcapi.Outcome
	over    bool
}

// New returns a daemon that works.
func New() *Daemon {
	return &Daemon{Told: make(chan struct{}, 1000), runs: make(map[string]*Run)}
}

// Options are those that tell a run to f.
func (f *Daemon) Options() *daemon.Options {
	return &daemon.Options{URL: "ws://me:secret@127.0.0.1:1/?token=x", Intent: "try it", Dial: func(context.Context) (daemon.Sink, error) { return f.Sink(), nil }}
}

// Deny has calls of a tool denied.
func (f *Daemon) Deny(tool string) { f.Set(func() { f.denied = tool }) }

// Sink is a connection.
func (f *Daemon) Sink() daemon.Sink { f.Set(func() { f.Sessions++ }); return fakeSink{f} }

// Set changes f, or looks at it, while nobody else does.
func (f *Daemon) Set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// Runs returns the runs in the order of their start.
func (f *Daemon) Runs() (out []Run) {
	f.Set(func() {
		for _, id := range f.order {
			r := *f.runs[id]
			r.Turns = slices.Clone(r.Turns)
			out = append(out, r)
		}
	})
	return out
}

// Restart ends what is open, as a daemon does that was killed.
func (f *Daemon) Restart() {
	f.Set(func() {
		for _, r := range f.runs {
			r.over = true
		}
	})
}

// Wait returns after n batches.
func (f *Daemon) Wait(t testing.TB, n int) {
	t.Helper()
	for range n {
		<-f.Told
	}
}

// Texts is a line of each turn.
func (r *Run) Texts() (out []string) {
	for i := range r.Turns {
		tu := &r.Turns[i]
		text := fmt.Sprintf("%s %s %s", *tu.Tool, tu.Parameters, tu.Output)
		if tu.Error != nil {
			text += "failed: " + *tu.Error
		}
		out = append(out, text)
	}
	return out
}

type fakeSink struct{ f *Daemon }

func (s fakeSink) begin(ctx context.Context) error {
	s.f.mu.Lock()
	hang := s.f.Hang
	away := s.f.Away
	s.f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if away {
		return ErrGone
	}
	return nil
}

// Start implements daemon.Sink.
func (s fakeSink) Start(ctx context.Context, p *rpcapi.RunsStartParams) (*rpcapi.RunsStartResult, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.f.Set(func() {
		if s.f.runs[p.IdempotencyKey] == nil {
			s.f.runs[p.IdempotencyKey] = &Run{Start: *p}
			s.f.order = append(s.f.order, p.IdempotencyKey)
		}
	})
	return &rpcapi.RunsStartResult{RunID: p.IdempotencyKey, AgentID: "name:" + p.AgentName}, nil
}

// Record implements daemon.Sink.
func (s fakeSink) Record(ctx context.Context, run string, turns []json.RawMessage) (*rpcapi.RunsRecordTurnsResult, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	f := s.f
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[run]
	if f.Before > 0 {
		f.Before--
		return nil, ErrGone
	}
	if r.over {
		return &rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: daemon.DroppedTerminal}, nil
	}
	if f.Refuse != nil {
		for _, turn := range turns {
			if why := f.Refuse(string(turn)); why != "" {
				return &rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: why}, nil
			}
		}
	}
	if f.Full > 0 && len(r.Turns)+len(turns) > f.Full {
		return &rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: daemon.DroppedLimit}, nil
	}
	for _, turn := range turns {
		var tu runtrace.Turn
		if err := json.Unmarshal(turn, &tu); err != nil {
			return nil, &daemon.Refusal{Err: err}
		}
		r.Turns = append(r.Turns, tu)
	}
	if f.After > 0 {
		f.After--
		return nil, ErrGone
	}
	f.Told <- struct{}{}
	return &rpcapi.RunsRecordTurnsResult{RunID: run, OK: true, Count: len(turns)}, nil
}

// Turns implements daemon.Sink.
func (s fakeSink) Turns(ctx context.Context, run string, from int) (n int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	s.f.Set(func() { n = len(s.f.runs[run].Turns) - from })
	return n, nil
}

// Check implements daemon.Sink.
func (s fakeSink) Check(ctx context.Context, p *rpcapi.PolicyCheckParams) (v json.RawMessage, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.f.Set(func() {
		if s.f.Unknown {
			err = &daemon.Refusal{Err: errors.New("unknown method"), Unknown: true}
			return
		}
		s.f.Judged = append(s.f.Judged, p.Tool+" "+string(p.Parameters))
		v = json.RawMessage(`{"policy_set":"aa","verdict":{"kind":"allow"}}`)
		if p.Tool == s.f.denied {
			v = json.RawMessage(`{"policy_set":"aa","verdict":{"kind":"deny","reason":"never","violations":[]}}`)
		}
	})
	return v, err
}

// Complete implements daemon.Sink.
func (s fakeSink) Complete(ctx context.Context, p *rpcapi.RunsCompleteParams) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.f.Set(func() { s.f.runs[p.RunID].Outcome, s.f.runs[p.RunID].over = &p.Outcome, true })
	return nil
}

// Close implements daemon.Sink.
func (s fakeSink) Close() error { s.f.Set(func() { s.f.Sessions-- }); return nil }
