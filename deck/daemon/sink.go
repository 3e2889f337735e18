package daemon

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// A Sink takes a run: a daemon, over a connection that is made again when it is lost. A *Refusal is its answer; after any other
// error whether it was done is not known.
type Sink interface {
	// Start opens a run, or returns to the one that the key names.
	Start(context.Context, *rpcapi.RunsStartParams) (*rpcapi.RunsStartResult, error)
	Record(ctx context.Context, run string, turns []json.RawMessage) (*rpcapi.RunsRecordTurnsResult, error)
	// Turns counts the turns of a run, those before from left out.
	Turns(ctx context.Context, run string, from int) (int, error)
	// Check returns a verdict of the daemon's policies, as policy.Verdict writes it.
	Check(context.Context, *rpcapi.PolicyCheckParams) (json.RawMessage, error)
	Complete(context.Context, *rpcapi.RunsCompleteParams) error
	Close() error
}

// A Refusal is what the daemon says in the place of a result.
type Refusal struct {
	Err     error
	Unknown bool // it does not have the method
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

// refusalOf is the daemon's answer in err; nil for another error, and for none.
func refusalOf(err error) *Refusal {
	no, _ := errors.AsType[*Refusal](err)
	return no
}

// remote is a daemon.
type remote struct{ c *client.Client }

func dialRemote(ctx context.Context, url string) (Sink, error) {
	c, err := client.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	return &remote{c}, nil
}

func (s *remote) call(ctx context.Context, method string, params, result any) error {
	err := s.c.Call(ctx, method, params, result)
	if e, ok := errors.AsType[*client.Error](err); ok {
		return &Refusal{Err: err, Unknown: e.Code == client.MethodNotFound}
	}
	return err
}

// Start implements Sink. The client keeps the run open when it connects again.
func (s *remote) Start(ctx context.Context, p *rpcapi.RunsStartParams) (*rpcapi.RunsStartResult, error) {
	run, err := s.c.Start(ctx, *p)
	if err != nil {
		if _, ok := errors.AsType[*client.Error](err); ok {
			err = &Refusal{Err: err}
		}
		return nil, err
	}
	return &rpcapi.RunsStartResult{RunID: run.ID, AgentID: run.AgentID}, nil
}

// Record implements Sink.
func (s *remote) Record(ctx context.Context, run string, turns []json.RawMessage) (*rpcapi.RunsRecordTurnsResult, error) {
	var res rpcapi.RunsRecordTurnsResult
	err := s.call(ctx, rpcapi.RunsRecordTurns, map[string]any{"run_id": run, "turns": turns}, &res)
	return &res, err
}

// Turns implements Sink.
func (s *remote) Turns(ctx context.Context, run string, from int) (n int, err error) {
	cursor := from + 1 // the first record is none
	for {
		var res rpcapi.RunsGetTraceResult
		if err := s.call(ctx, rpcapi.RunsGetTrace, &rpcapi.RunsGetTraceParams{RunID: run, Cursor: cursor}, &res); err != nil {
			return n, err
		}
		if len(res.Records) == 0 {
			return n, nil
		}
		for _, line := range res.Records {
			if tag, _ := runtrace.Tag(line); tag == "turn" {
				n++
			}
		}
		cursor += len(res.Records)
	}
}

// Check implements Sink.
func (s *remote) Check(ctx context.Context, p *rpcapi.PolicyCheckParams) (verdict json.RawMessage, err error) {
	err = s.call(ctx, rpcapi.PolicyCheck, p, &verdict)
	return verdict, err
}

// Complete implements Sink.
func (s *remote) Complete(ctx context.Context, p *rpcapi.RunsCompleteParams) error {
	return s.call(ctx, rpcapi.RunsComplete, p, nil)
}

// Close implements Sink.
func (s *remote) Close() error { return s.c.Close() }
