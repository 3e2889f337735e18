package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// Memory is a Store that keeps everything in memory and nothing beyond it: the fake of tests.
type Memory struct {
	// Fail, where it is set, is asked before each operation, named as the method in lower case; an error that it returns is the
	// operation's, and nothing is kept. It is set before the store is used.
	Fail func(op string, id runtrace.ID) error

	mu       sync.Mutex
	runs     map[string]*memoryRun
	started  []*memoryRun
	verdicts map[runtrace.ID][]json.RawMessage
	stats    Stats
	closed   bool
}

type memoryRun struct {
	Summary
	lines [][]byte // without newlines
	feed  feed
}

// NewMemory returns an empty one.
func NewMemory() *Memory {
	return &Memory{runs: map[string]*memoryRun{}, verdicts: map[runtrace.ID][]json.RawMessage{}}
}

var _ Store = (*Memory)(nil)

// enter locks the store for an operation, unless it is closed or to fail.
func (m *Memory) enter(ctx context.Context, op string, id runtrace.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.Fail != nil {
		if err := m.Fail(op, id); err != nil {
			return err
		}
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// run returns a run of this agent. The store is locked.
func (m *Memory) run(id runtrace.ID) (*memoryRun, error) {
	if r := m.runs[id.Run]; r != nil && r.Agent == id.Agent {
		return r, nil
	}
	return nil, ErrNotFound
}

// Start is that of Store.
func (m *Memory) Start(ctx context.Context, s *runtrace.Started) (bool, error) {
	id := s.ID()
	if err := id.Check(); err != nil {
		return false, err
	}
	if err := m.enter(ctx, "start", id); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	if r := m.runs[id.Run]; r != nil {
		if r.Agent != id.Agent {
			return false, ErrOther
		}
		return true, nil
	}
	started := *s
	started.StartedAt = cmp.Or(started.StartedAt, runtrace.Time(time.Now()))
	line, err := started.AppendLine(nil)
	if err != nil {
		return false, err
	}
	r := &memoryRun{feed: feed{}, Summary: Summary{
		ID: id, Intent: runtrace.Truncate(s.Intent), StartedAt: started.StartedAt, Status: runtrace.InProgress}}
	r.add(line)
	m.runs[id.Run] = r
	m.started = append(m.started, r)
	m.stats.Started++
	m.stats.Open++
	return false, nil
}

// add keeps a line and publishes it.
func (r *memoryRun) add(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	r.feed.publish(Event{Record: line, Cursor: r.Turns, Status: r.Status}, len(r.lines))
	r.lines = append(r.lines, line)
}

// Append is that of Store.
func (m *Memory) Append(ctx context.Context, id runtrace.ID, turns []runtrace.Turn) (int, error) {
	if err := m.enter(ctx, "append", id); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	r, err := m.run(id)
	switch {
	case err != nil:
		return 0, &Dropped{RunNotFound}
	case r.Status != runtrace.InProgress:
		return 0, &Dropped{RunTerminal}
	case r.Turns+len(turns) > runtrace.MaxTurns:
		return 0, &Dropped{RunTurnLimit}
	}
	base := r.Turns
	lines, err := encodeTurns(turns, base)
	if err != nil {
		return 0, err
	}
	for _, line := range lines {
		r.Turns++
		r.add(line)
	}
	m.stats.Turns += uint64(len(turns))
	return base, nil
}

// encodeTurns gives the lines of turns whose first index is base.
func encodeTurns(turns []runtrace.Turn, base int) ([][]byte, error) {
	lines := make([][]byte, len(turns))
	for i := range turns {
		t := turns[i]
		t.Index = base + i
		var err error
		if lines[i], err = t.AppendLine(nil); err != nil {
			return nil, dropTooLarge(err)
		}
	}
	return lines, nil
}

// dropTooLarge makes of a line that is too long what Append says of it.
func dropTooLarge(err error) error {
	var large *runtrace.TooLargeError
	if errors.As(err, &large) {
		return &Dropped{TurnTooLarge}
	}
	return err
}

// End is that of Store.
func (m *Memory) End(ctx context.Context, id runtrace.ID, e *runtrace.Ended) error {
	if err := m.enter(ctx, "end", id); err != nil {
		return err
	}
	defer m.mu.Unlock()
	r, err := m.run(id)
	if err != nil {
		return err
	}
	if r.Status != runtrace.InProgress {
		return ErrEnded
	}
	ended := *e
	ended.RunID, ended.AgentID = id.Run, id.Agent
	ended.Status = cmp.Or(ended.Status, runtrace.Completed)
	ended.EndedAt = cmp.Or(ended.EndedAt, runtrace.Time(time.Now()))
	line, err := ended.AppendLine(nil)
	if err != nil {
		return err
	}
	r.Status, r.EndedAt = ended.Status, ended.EndedAt
	r.add(line)
	m.stats.Ended++
	m.stats.Open--
	return nil
}

// Verdict is that of Store.
func (m *Memory) Verdict(ctx context.Context, id runtrace.ID, verdict json.RawMessage) error {
	if err := checkVerdict(verdict); err != nil {
		return err
	}
	if err := m.enter(ctx, "verdict", id); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if err := m.known(id); err != nil {
		return err
	}
	m.verdicts[id] = append(m.verdicts[id], slices.Clone(verdict))
	return nil
}

func checkVerdict(verdict json.RawMessage) error {
	if len(verdict) > runtrace.MaxLine {
		return &runtrace.TooLargeError{Record: "verdict", Size: len(verdict)}
	}
	if !json.Valid(verdict) {
		return &runtrace.InvalidError{Key: "verdict", Cause: errors.New("not one JSON value")}
	}
	return nil
}

// known reports whether there is such a run; the zero ID is known.
func (m *Memory) known(id runtrace.ID) error {
	if id == (runtrace.ID{}) {
		return nil
	}
	_, err := m.run(id)
	return err
}

// Verdicts is that of Store.
func (m *Memory) Verdicts(ctx context.Context, id runtrace.ID) ([]json.RawMessage, error) {
	if err := m.enter(ctx, "verdicts", id); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return slices.Clone(m.verdicts[id]), m.known(id)
}

// Find is that of Store.
func (m *Memory) Find(ctx context.Context, run string) (Summary, error) {
	if err := m.enter(ctx, "find", runtrace.ID{Run: run}); err != nil {
		return Summary{}, err
	}
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		return r.Summary, nil
	}
	return Summary{}, ErrNotFound
}

// List is that of Store.
func (m *Memory) List(ctx context.Context, agent string) ([]Summary, error) {
	if err := m.enter(ctx, "list", runtrace.ID{Agent: agent}); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var all []Summary
	for _, r := range slices.Backward(m.started) {
		if agent == "" || r.Agent == agent {
			all = append(all, r.Summary)
		}
	}
	return all, nil
}

// Trace is that of Store.
func (m *Memory) Trace(ctx context.Context, id runtrace.ID, o *TraceOptions) (*Trace, error) {
	if err := m.enter(ctx, "trace", id); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	r, err := m.run(id)
	if err != nil {
		return nil, err
	}
	return cutTrace(&Trace{ID: id, Status: r.Status}, r.lines, o), nil
}

// cutTrace fills t with the part of all lines that o asks for.
func cutTrace(t *Trace, lines [][]byte, o *TraceOptions) *Trace {
	if o == nil {
		o = &TraceOptions{}
	}
	t.From = min(max(o.From, 0), len(lines))
	t.Next = len(lines)
	if o.MaxBytes > 0 {
		sum := 0
		for i := t.From; i < len(lines); i++ {
			if sum += len(lines[i]); sum > o.MaxBytes && i > t.From {
				t.Next, t.More = i, true
				break
			}
		}
	}
	t.Records = slices.Clone(lines[t.From:t.Next])
	return t
}

// Subscribe is that of Store.
func (m *Memory) Subscribe(ctx context.Context, id runtrace.ID, o *SubscribeOptions) (*Subscription, error) {
	if err := m.enter(ctx, "subscribe", id); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	r, err := m.run(id)
	if err != nil {
		return nil, err
	}
	s := newSubscription(id, o)
	s.snapshot(cutTrace(&Trace{}, r.lines, &TraceOptions{From: 1, MaxBytes: s.bounds.MaxSnapshot}), r.Turns, r.Status)
	if r.Status != runtrace.InProgress {
		s.finish()
		return s, nil
	}
	r.feed[s] = struct{}{}
	s.leave = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(r.feed, s)
	}
	return s, nil
}

// Stats is that of Store.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

// Health is that of Store; Fail is asked for "health".
func (m *Memory) Health() error {
	if m.Fail != nil {
		return m.Fail("health", runtrace.ID{})
	}
	return nil
}

// Close is that of Store.
func (m *Memory) Close(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.closed = true
	for _, r := range m.runs {
		for s := range r.feed {
			s.finish()
		}
	}
	return nil
}
