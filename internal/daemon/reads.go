package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
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
	return &runList{agent, runs}, nil
}

// listed is the agent whose runs are listed; "" is all.
func (s *session) listed(agent string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if agent == "" {
		if s.who.readsAll() {
			return "", nil
		}
		if agent = s.agent(); agent == "" {
			return "", badParams("agent_id is required")
		}
	}
	if err := runtrace.CheckName("agent_id", agent); err != nil {
		return "", badParams("%v", err)
	}
	if !s.who.reads(agent) {
		return "", failed("agent_id is not this connection's own")
	}
	return agent, nil
}

// runList is rpcapi.RunsListResult without reflection: it may be of 10,000 runs.
type runList struct {
	agent string
	runs  []store.Summary
}

func (l *runList) AppendJSON(dst []byte) ([]byte, error) {
	dst = jsonscan.AppendText(append(dst, `{"agent_id":`...), l.agent)
	dst = append(dst, `,"runs":[`...)
	for i := range l.runs {
		r := &l.runs[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonscan.AppendText(append(dst, `{"run_id":`...), r.Run)
		dst = jsonscan.AppendText(append(dst, `,"agent_id":`...), r.Agent)
		dst = jsonscan.AppendText(append(dst, `,"intent":`...), r.Intent)
		dst = jsonscan.AppendText(append(dst, `,"started_at":`...), r.StartedAt)
		if r.EndedAt != "" {
			dst = jsonscan.AppendText(append(dst, `,"ended_at":`...), r.EndedAt)
		}
		dst = jsonscan.AppendText(append(dst, `,"status":`...), string(r.Status))
		dst = append(strconv.AppendInt(append(dst, `,"turn_count":`...), int64(r.Turns), 10), '}')
	}
	return append(dst, "]}"...), nil
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
	id, ok, err := s.readable(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return notFound{p.RunID, true}, nil
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
	id, ok, err := s.readable(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noRun()
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
