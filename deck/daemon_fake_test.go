package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// errGone is what a connection fails with.
var errGone = errors.New("gone")

// A FakeDaemon takes runs in memory, and fails as it is told.
type FakeDaemon struct {
	Told chan struct{} // gets a value after each batch

	mu       sync.Mutex
	runs     map[string]*FakeRun
	order    []string
	away     bool                // every call fails
	hang     chan struct{}       // every call waits for it; nil for none
	before   int                 // so many batches fail before they are recorded
	after    int                 // so many batches fail after they were recorded
	refuse   func(string) string // why a batch of this size is dropped
	full     int                 // so many turns a run takes; 0 for any
	denied   string              // a tool
	judged   []string            // tool and parameters
	unknown  bool                // there is no policy.check
	sessions int
}

// A FakeRun is a run of a FakeDaemon.
type FakeRun struct {
	Start   rpcapi.RunsStartParams
	Turns   []runtrace.Turn
	Outcome *rpcapi.Outcome
	over    bool
}

// NewFakeDaemon returns a daemon that works.
func NewFakeDaemon() *FakeDaemon {
	return &FakeDaemon{Told: make(chan struct{}, 1000), runs: make(map[string]*FakeRun)}
}

// Options are those that tell a run to f.
func (f *FakeDaemon) Options() *DaemonOptions {
	return &DaemonOptions{URL: "ws://me:secret@127.0.0.1:1/?token=x", Intent: "try it", dial: func(context.Context) (runSink, error) { return f.Sink(), nil }}
}

// Deny has calls of a tool denied.
func (f *FakeDaemon) Deny(tool string) { f.set(func() { f.denied = tool }) }

// Sink is a connection.
func (f *FakeDaemon) Sink() runSink { f.set(func() { f.sessions++ }); return fakeSink{f} }

func (f *FakeDaemon) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// Runs returns the runs in the order of their start.
func (f *FakeDaemon) Runs() (out []FakeRun) {
	f.set(func() {
		for _, id := range f.order {
			r := *f.runs[id]
			r.Turns = slices.Clone(r.Turns)
			out = append(out, r)
		}
	})
	return out
}

// restart ends what is open, as a daemon does that was killed.
func (f *FakeDaemon) restart() {
	f.set(func() {
		for _, r := range f.runs {
			r.over = true
		}
	})
}

// wait returns after n batches.
func (f *FakeDaemon) wait(t testing.TB, n int) {
	t.Helper()
	for range n {
		<-f.Told
	}
}

// texts is a line of each turn.
func (r *FakeRun) texts() (out []string) {
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

type fakeSink struct{ f *FakeDaemon }

func (s fakeSink) begin(ctx context.Context) error {
	s.f.mu.Lock()
	hang := s.f.hang
	away := s.f.away
	s.f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if away {
		return errGone
	}
	return nil
}

func (s fakeSink) Start(ctx context.Context, p *rpcapi.RunsStartParams) (*rpcapi.RunsStartResult, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.f.set(func() {
		if s.f.runs[p.IdempotencyKey] == nil {
			s.f.runs[p.IdempotencyKey] = &FakeRun{Start: *p}
			s.f.order = append(s.f.order, p.IdempotencyKey)
		}
	})
	return &rpcapi.RunsStartResult{RunID: p.IdempotencyKey, AgentID: "name:" + p.AgentName}, nil
}

func (s fakeSink) Record(ctx context.Context, run string, turns []json.RawMessage) (*rpcapi.RunsRecordTurnsResult, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	f := s.f
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[run]
	if f.before > 0 {
		f.before--
		return nil, errGone
	}
	if r.over {
		return &rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: droppedTerminal}, nil
	}
	if f.refuse != nil {
		for _, turn := range turns {
			if why := f.refuse(string(turn)); why != "" {
				return &rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: why}, nil
			}
		}
	}
	if f.full > 0 && len(r.Turns)+len(turns) > f.full {
		return &rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: droppedLimit}, nil
	}
	for _, turn := range turns {
		var tu runtrace.Turn
		if err := json.Unmarshal(turn, &tu); err != nil {
			return nil, &daemonRefusal{err: err}
		}
		r.Turns = append(r.Turns, tu)
	}
	if f.after > 0 {
		f.after--
		return nil, errGone
	}
	f.Told <- struct{}{}
	return &rpcapi.RunsRecordTurnsResult{RunID: run, OK: true, Count: len(turns)}, nil
}

func (s fakeSink) Turns(ctx context.Context, run string, from int) (n int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	s.f.set(func() { n = len(s.f.runs[run].Turns) - from })
	return n, nil
}

func (s fakeSink) Check(ctx context.Context, p *rpcapi.PolicyCheckParams) (v json.RawMessage, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.f.set(func() {
		if s.f.unknown {
			err = &daemonRefusal{err: errors.New("unknown method"), unknown: true}
			return
		}
		s.f.judged = append(s.f.judged, p.Tool+" "+string(p.Parameters))
		v = json.RawMessage(`{"policy_set":"aa","verdict":{"kind":"allow"}}`)
		if p.Tool == s.f.denied {
			v = json.RawMessage(`{"policy_set":"aa","verdict":{"kind":"deny","reason":"never","violations":[]}}`)
		}
	})
	return v, err
}

func (s fakeSink) Complete(ctx context.Context, p *rpcapi.RunsCompleteParams) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.f.set(func() { s.f.runs[p.RunID].Outcome, s.f.runs[p.RunID].over = &p.Outcome, true })
	return nil
}

func (s fakeSink) Close() error { s.f.set(func() { s.f.sessions-- }); return nil }
