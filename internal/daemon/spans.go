package daemon

import (
	"context"
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// Spans is told of runs once the store has what it is told. It must not wait for anybody: whoever asked waits for it.
type Spans interface {
	Started(s *runtrace.Started)
	Turns(id runtrace.ID, base int, turns []runtrace.Turn)
	Verdict(id runtrace.ID, verdict json.RawMessage)
	Ended(id runtrace.ID, e *runtrace.Ended)
	// Counts are how many spans a receiver has taken, and how many were dropped.
	Counts() (sent, dropped int)
}

// A telling is a store that tells what it keeps.
type telling struct {
	store.Store
	spans Spans
}

func (t *telling) Start(ctx context.Context, s *runtrace.Started) (existing bool, err error) {
	existing, err = t.Store.Start(ctx, s)
	if err == nil && !existing {
		t.spans.Started(s)
	}
	return existing, err
}

func (t *telling) Append(ctx context.Context, id runtrace.ID, turns []runtrace.Turn) (base int, err error) {
	base, err = t.Store.Append(ctx, id, turns)
	if err == nil {
		t.spans.Turns(id, base, turns)
	}
	return base, err
}

func (t *telling) Verdict(ctx context.Context, id runtrace.ID, verdict json.RawMessage) error {
	err := t.Store.Verdict(ctx, id, verdict)
	if err == nil {
		t.spans.Verdict(id, verdict)
	}
	return err
}

func (t *telling) End(ctx context.Context, id runtrace.ID, e *runtrace.Ended) error {
	err := t.Store.End(ctx, id, e)
	if err == nil {
		t.spans.Ended(id, e)
	}
	return err
}
