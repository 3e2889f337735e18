package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// Find is that of Store.
func (s *Disk) Find(ctx context.Context, name string) (Summary, error) {
	if err := s.enter(ctx); err != nil {
		return Summary{}, err
	}
	defer s.leave()
	r, err := s.runs.look(ctx, name)
	if err != nil {
		return Summary{}, err
	}
	defer r.unpin()
	st, _ := r.settled()
	if !st.exists() || st.head.id.Run != name {
		return Summary{}, ErrNotFound
	}
	return st.summary(), nil
}

// List is that of Store.
func (s *Disk) List(ctx context.Context, agent string) ([]Summary, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	known, live := s.inMemory(agent)
	all := make([]Summary, 0, len(live))
	err := s.index.list(ctx, agent, func(r row) error {
		if known[r.key] {
			return nil
		}
		for len(live) > 0 && live[0].first > r.first {
			all = append(all, live[0].state.summary())
			live = live[1:]
		}
		all = append(all, r.state.summary())
		return nil
	})
	for _, r := range live {
		all = append(all, r.state.summary())
	}
	return all, err
}

// inMemory gives an agent's runs that are in the table, the last started first, and their keys. What leaves the table meanwhile is
// in the index.
func (s *Disk) inMemory(agent string) (known map[string]bool, rows []row) {
	known = map[string]bool{}
	s.runs.each(func(r *run) {
		st, first := r.settled()
		if !st.exists() || agent != "" && st.head.id.Agent != agent {
			return
		}
		known[r.key] = true
		rows = append(rows, row{r.key, st, first})
	})
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(b.first, a.first) })
	return known, rows
}

// Verdicts is that of Store.
func (s *Disk) Verdicts(ctx context.Context, id runtrace.ID) ([]json.RawMessage, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	r, err := s.runs.look(ctx, id.Run)
	if err != nil {
		return nil, err
	}
	defer r.unpin()
	if st, _ := r.settled(); id != (runtrace.ID{}) && !st.of(id) {
		return nil, ErrNotFound
	}
	r.mu.Lock()
	last := r.verdict
	r.mu.Unlock()
	if last != nil {
		if err := last.wait(ctx); err != nil {
			return nil, err
		}
	}
	return s.allVerdicts(ctx, id)
}

// allVerdicts are those of the index and those that it does not have yet.
func (s *Disk) allVerdicts(ctx context.Context, id runtrace.ID) (all []json.RawMessage, err error) {
	pending := s.checkpoints.verdicts.snapshot() // first: what is saved meanwhile is in the index then
	upto := seglog.Pos(0)
	err = s.index.verdicts(ctx, id, func(v verdictRow) {
		all = append(all, json.RawMessage(v.verdict))
		upto = v.pos
	})
	for _, v := range pending {
		if v.id == id && v.pos > upto {
			all = append(all, json.RawMessage(v.verdict))
		}
	}
	return all, err
}

// Trace is that of Store.
func (s *Disk) Trace(ctx context.Context, id runtrace.ID, o *TraceOptions) (*Trace, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	r, err := s.known(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.unpin()
	want := TraceOptions{}
	if o != nil {
		want = *o
	}
	t, _, err := s.records(ctx, r, want, func() {})
	return t, err
}

// known returns a run that exists and is this one, pinned.
func (s *Disk) known(ctx context.Context, id runtrace.ID) (*run, error) {
	r, err := s.runs.look(ctx, id.Run)
	if err != nil {
		return nil, err
	}
	if st, _ := r.settled(); !st.of(id) {
		r.unpin()
		return nil, ErrNotFound
	}
	return r, nil
}

// records reads the run's file, which is written again from the log where it is not what it should be. With the state of the
// file that is read settled, and before anything is added to it, it calls then.
func (s *Disk) records(ctx context.Context, r *run, o TraceOptions, then func()) (*Trace, state, error) {
	st, err := s.atRest(ctx, r, false, then)
	if err != nil {
		return nil, st, err
	}
	t, err := s.files.readFile(st, o)
	if errors.Is(err, errFile) {
		if _, err := s.atRest(ctx, r, true, func() {}); err != nil {
			return nil, st, err
		}
		t, err = s.files.readFile(st, o)
	}
	return t, st, err
}

// atRest brings the run's file up to date and returns what it holds. A file whose length is wrong is written again, and with
// again any.
func (s *Disk) atRest(ctx context.Context, r *run, again bool, then func()) (state, error) {
	r.files.Lock()
	defer r.files.Unlock()
	err := s.files.writeLocked(r)
	if !r.file.exists() {
		return state{}, fmt.Errorf("the run's file could not be begun: %w", err)
	}
	info, statErr := s.files.fs.Stat(s.files.path(r.file.head.id))
	switch {
	case err != nil: // it may be longer by a part of what could not be written
	case again || statErr != nil || info.Size() != r.file.bytes:
		if err := s.mender.repair(ctx, r); err != nil {
			return state{}, err
		}
	}
	then()
	return r.file, nil
}

// Subscribe is that of Store.
func (s *Disk) Subscribe(ctx context.Context, id runtrace.ID, o *SubscribeOptions) (*Subscription, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	r, err := s.known(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.unpin()
	sub := &Subscription{ID: id, bounds: o.orDefault(), ready: make(chan struct{}, 1), leave: func() {}}
	t, st, err := s.records(ctx, r, TraceOptions{From: 1, MaxBytes: sub.bounds.MaxSnapshot}, func() { r.follow(sub) })
	if err != nil {
		sub.Close()
		return nil, err
	}
	sub.snapshot(t, st.turns, st.status)
	return sub, nil
}
