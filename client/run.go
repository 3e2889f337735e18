package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A Run is an open run of this client. Turns of proposals go to the run that was started last.
type Run struct {
	ID      string
	AgentID string

	c      *Client
	params rpcapi.RunsStartParams // as it was started, to start it again on another connection
}

// Start opens a run, or returns to the one that p.IdempotencyKey names.
func (c *Client) Start(ctx context.Context, p rpcapi.RunsStartParams) (*Run, error) {
	var res rpcapi.RunsStartResult
	if err := c.Call(ctx, rpcapi.RunsStart, p, &res); err != nil {
		return nil, err
	}
	if res.RunID == "" || res.AgentID == "" || p.IdempotencyKey != "" && res.RunID != p.IdempotencyKey {
		return nil, fmt.Errorf("%s: the daemon's result is not of the protocol's shape: want run_id and agent_id of the run, got %q and %q",
			rpcapi.RunsStart, res.RunID, res.AgentID)
	}
	p.AgentID, p.IdempotencyKey = res.AgentID, res.RunID
	r := &Run{ID: res.RunID, AgentID: res.AgentID, c: c, params: p}
	c.opened(r)
	return r, nil
}

// RecordTurns records a batch of 1 to 256 turns, whole or not at all, and returns the index of the first: the daemon numbers
// them, whatever Turn.Index says. When it returns nil they are on the daemon's disk. A batch that was not recorded is a
// *DroppedError.
func (r *Run) RecordTurns(ctx context.Context, turns ...rpcapi.Turn) (base int, err error) {
	var res rpcapi.RunsRecordTurnsResult
	if err := r.c.Call(ctx, rpcapi.RunsRecordTurns, rpcapi.RunsRecordTurnsParams{RunID: r.ID, Turns: turns}, &res); err != nil {
		return 0, err
	}
	if !res.OK {
		return 0, &DroppedError{RunID: r.ID, Reason: res.Dropped}
	}
	return res.BaseIndex, nil
}

// Complete ends the run. To complete it twice is an error.
func (r *Run) Complete(ctx context.Context, outcome rpcapi.Outcome) error {
	var res rpcapi.RunsCompleteResult
	err := r.c.Call(ctx, rpcapi.RunsComplete, rpcapi.RunsCompleteParams{RunID: r.ID, Outcome: outcome}, &res)
	if err == nil {
		r.c.ended(r)
	}
	return err
}

// Records are those of the run's file now. Breaking out of the loop is fine.
func (r *Run) Records(ctx context.Context) iter.Seq2[Record, error] { return r.c.Records(ctx, r.ID, 0) }

// Subscribe follows the run from its first record to its last: see Client.Subscribe.
func (r *Run) Subscribe(ctx context.Context) iter.Seq2[Record, error] {
	return r.c.Subscribe(ctx, r.ID, 0)
}

// A Record is one of a run's trace.
type Record struct {
	// Cursor counts the records of the run up to and with this one: where Records and Subscribe go on after it.
	Cursor int
	// Kind is started, turn or ended.
	Kind string
	// JSON is the record as it stands on the daemon's disk.
	JSON json.RawMessage
}

// opened notes a run that is to be started again when the connection is lost.
func (c *Client) opened(r *Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = append(slices.DeleteFunc(c.runs, func(o *Run) bool { return o.ID == r.ID }), r)
}

func (c *Client) ended(r *Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = slices.DeleteFunc(c.runs, func(o *Run) bool { return o.ID == r.ID })
}
