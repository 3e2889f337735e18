package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

func runsStart(ctx context.Context, s *session, p *rpcapi.RunsStartParams) (any, error) {
	id, err := s.newRun(p)
	if err != nil {
		return nil, err
	}
	// Held before it is looked up: a run in its grace must not end between the two.
	known := s.d.runs.take(id, s)
	existing, err := s.d.store.Start(ctx, s.started(id, p))
	if err != nil {
		s.letGo(id, known)
		return nil, s.startError(id.Run, err)
	}
	open := true
	if existing && !known { // ended, or of a time before the daemon's start: there is nothing to hold
		if found, err := s.d.store.Find(ctx, id.Run); err == nil && found.Status != runtrace.InProgress {
			s.d.runs.forget(id)
			open = false
		}
	}
	s.mu.Lock()
	if open {
		s.held[id.Run] = id
	}
	s.who.start(id.Agent)
	s.current = id
	s.mu.Unlock()
	s.log.Info("run started", "run", id.Run, "agent", id.Agent, "existing", existing)
	return rpcapi.RunsStartResult{RunID: id.Run, AgentID: id.Agent}, nil
}

// newRun says under which id the run that p asks for goes, if this connection may start it. Nothing is built from an id that
// is no plain name.
func (s *session) newRun(p *rpcapi.RunsStartParams) (runtrace.ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := runtrace.ID{Agent: p.AgentID, Run: p.IdempotencyKey}
	if id.Agent == "" {
		id.Agent = s.who.bound
	}
	if id.Agent == "" && slug(p.AgentName) != "" {
		id.Agent = "name:" + slug(p.AgentName)
	}
	switch {
	case s.who.host:
		return id, failed("the host role reads runs and starts none: connect with the token of agents")
	case id.Agent == "":
		return id, badParams("agent_id is required, or an agent_name with letters or digits in it")
	}
	if id.Run == "" {
		id.Run = newUUID()
	}
	if err := runtrace.CheckName("agent_id", id.Agent); err != nil {
		return id, badParams("%v", err)
	}
	if err := runtrace.CheckName("idempotency_key", id.Run); err != nil {
		return id, badParams("%v", err)
	}
	if !s.who.may(id.Agent) {
		return id, badParams("agent_id is not that of session.auth: leave it out, or connect as that agent")
	}
	if !s.who.owns(id.Agent) && len(s.who.started) >= s.d.o.Limits.Agents {
		return id, failed("a connection starts runs of at most %d agents: open another", s.d.o.Limits.Agents)
	}
	if _, again := s.held[id.Run]; !again && len(s.held) >= s.d.o.Limits.Runs {
		return id, failed("a connection holds at most %d open runs: complete some", s.d.o.Limits.Runs)
	}
	return id, nil
}

func (s *session) started(id runtrace.ID, p *rpcapi.RunsStartParams) *runtrace.Started {
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	return &runtrace.Started{
		RunID: id.Run, AgentID: id.Agent, AgentName: optional(p.AgentName), ClientID: optional(client), Intent: p.Intent,
		OutcomeDescription: optional(p.OutcomeDescription), StartedAt: runtrace.Time(time.Now()), Recording: p.Recording,
	}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// letGo takes back the hold of a run that was not started. One that was held before goes back into its grace.
func (s *session) letGo(id runtrace.ID, known bool) {
	s.mu.Lock()
	_, ours := s.held[id.Run]
	s.mu.Unlock()
	switch {
	case ours:
	case known:
		s.d.runs.release(id, s)
	default:
		s.d.runs.drop(id, s)
	}
}

// startError keeps from a caller whose run it is that has the id already.
func (s *session) startError(run string, err error) error {
	switch {
	case errors.Is(err, store.ErrOther):
		return badParams("idempotency_key cannot be used: take another one")
	case tooLarge(err):
		return badParams("%v", err)
	}
	return s.storeFailed("the run could not be recorded", run, err)
}

func tooLarge(err error) bool {
	var large *runtrace.TooLargeError
	var invalid *runtrace.InvalidError
	return errors.As(err, &large) || errors.As(err, &invalid)
}

// completeParams are rpcapi.RunsCompleteParams with the outcome as it came: keys that are not known are kept.
type completeParams struct {
	RunID   string          `json:"run_id"`
	Outcome json.RawMessage `json:"outcome"`
}

func runsComplete(ctx context.Context, s *session, p *completeParams) (any, error) {
	var outcome rpcapi.Outcome
	if len(p.Outcome) > 0 {
		if err := unmarshal(p.Outcome, &outcome); err != nil {
			return nil, badParams("outcome: %v", err)
		}
	}
	if outcome.Status == "" {
		return nil, badParams("outcome.status is required, one of %s", strings.Join(runtrace.OutcomeStatuses, ", "))
	}
	if !slices.Contains(runtrace.OutcomeStatuses, outcome.Status) {
		return nil, badParams("outcome.status: want one of %s, got \"%s\"", strings.Join(runtrace.OutcomeStatuses, ", "), printable(outcome.Status))
	}
	id, err := s.writes(ctx, p.RunID)
	if err != nil {
		return nil, err
	}
	err = s.d.store.End(ctx, id, &runtrace.Ended{Status: runtrace.Completed, Outcome: p.Outcome})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, errNoRun
	case errors.Is(err, store.ErrEnded):
		s.ended(id)
		return nil, failed("the run has ended already")
	case tooLarge(err):
		return nil, badParams("outcome: %v", err)
	case err != nil:
		return nil, s.storeFailed("the end of the run could not be recorded", id.Run, err)
	}
	s.ended(id)
	s.log.Info("run completed", "run", id.Run, "agent", id.Agent, "status", outcome.Status)
	return rpcapi.RunsCompleteResult{RunID: id.Run, OK: true}, nil
}

// errNoRun is the answer about a run that is not there and about one that is not the caller's, to the byte.
var errNoRun = failed("run not found")

// ended forgets a run that is over.
func (s *session) ended(id runtrace.ID) {
	s.d.runs.forget(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, id.Run)
	if s.current == id {
		s.current = runtrace.ID{}
	}
}

// giveUp ends a run whose connection went away and did not come back.
func (d *Daemon) giveUp(id runtrace.ID) {
	err := d.store.End(context.Background(), id, &runtrace.Ended{Status: runtrace.Incomplete})
	switch {
	case err == nil:
		d.log.Info("run given up: its connection went away", "run", id.Run, "agent", id.Agent)
	case !errors.Is(err, store.ErrEnded) && !errors.Is(err, store.ErrNotFound):
		d.log.Error("end of a run not kept; it reads as incomplete after the next start", "run", id.Run, "error", err)
	}
}

// writes returns the whole id of a run that this connection may write; errNoRun for any other. Held runs cost a look at a map.
func (s *session) writes(ctx context.Context, run string) (runtrace.ID, error) {
	s.mu.Lock()
	id, held := s.held[run]
	s.mu.Unlock()
	if held {
		return id, nil
	}
	return s.allowed(ctx, run, (*identity).owns)
}

// readable is writes for reading.
func (s *session) readable(ctx context.Context, run string) (runtrace.ID, error) {
	return s.allowed(ctx, run, (*identity).reads)
}

// allowed looks a run up and asks whether this connection may do something with runs of its agent. A run of somebody else takes
// another look that finds nothing, so that it is not answered sooner than one that is not there.
func (s *session) allowed(ctx context.Context, run string, may func(*identity, string) bool) (runtrace.ID, error) {
	if err := runtrace.CheckName("run_id", run); err != nil {
		return runtrace.ID{}, badParams("%v", err)
	}
	found, err := s.d.store.Find(ctx, run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return runtrace.ID{}, errNoRun
	case err != nil:
		return runtrace.ID{}, s.storeFailed("the run could not be looked up", run, err)
	}
	s.mu.Lock()
	ok := may(&s.who, found.Agent)
	s.mu.Unlock()
	if !ok {
		_, _ = s.d.store.Find(ctx, nobodys)
		return runtrace.ID{}, errNoRun
	}
	return found.ID, nil
}

// nobodys is a run id that no run has: the daemon makes none like it, and no client may.
const nobodys = "-"

// checkedRun is the run that a client names beside something else: its own, or none.
func (s *session) checkedRun(ctx context.Context, run string) (id runtrace.ID, agent string, err error) {
	s.mu.Lock()
	agent = s.agent()
	s.mu.Unlock()
	if run == "" {
		return runtrace.ID{}, agent, nil
	}
	id, err = s.writes(ctx, run)
	return id, id.Agent, err
}

// agent is who proposes, for policies: the one that is bound, else that of the current run. s.mu is held.
func (s *session) agent() string {
	if s.who.bound != "" {
		return s.who.bound
	}
	return s.current.Agent
}

// turnCost is what a turn costs its connection, in bytes, however short it is.
const turnCost = 1 << 10

// runsRecordTurns is the daemon's hot path: its params and its result know no reflection.
func runsRecordTurns(ctx context.Context, s *session, r *jsonrpc.Request) (any, error) {
	run, turns, err := readTurns(r.Params)
	if err != nil {
		return nil, err
	}
	r.Cost = int64(len(turns)) * turnCost
	id, err := s.writes(ctx, run)
	switch {
	case errors.Is(err, errNoRun):
		return s.droppedTurns(run, store.RunNotFound), nil
	case err != nil:
		return nil, err
	}
	base, err := s.d.store.Append(ctx, id, turns)
	var dropped *store.Dropped
	switch {
	case err == nil:
		s.d.metrics.turns.Add(len(turns))
		return rpcapi.RunsRecordTurnsResult{RunID: run, BaseIndex: base, Count: len(turns), OK: true}, nil
	case errors.As(err, &dropped):
		if dropped.Reason == store.RunTerminal {
			s.ended(id) // by another connection
		}
		return s.droppedTurns(run, dropped.Reason), nil
	case tooLarge(err):
		return nil, badParams("turns: %v", err)
	}
	return nil, s.storeFailed("the turns could not be recorded", run, err)
}

func (s *session) droppedTurns(run string, reason store.Reason) any {
	s.d.metrics.dropped.With(string(reason)).Inc()
	return rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: string(reason)}
}

const wantTurns = "runs.record_turns requires { run_id, turns: [RunTurn] }, 1 to 256 of them"

// readTurns reads the params of runs.record_turns, whose memory the turns share.
func readTurns(params []byte) (run string, turns []runtrace.Turn, err error) {
	var s jsonscan.Scanner
	s.Reset(params)
	if s.Peek() != '{' {
		return "", nil, badParams(wantTurns)
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "run_id":
			run = s.Text()
		case "turns":
			turns = runtrace.ReadTurns(&s)
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return "", nil, badParams("%s: %v", wantTurns, err)
	}
	if run == "" || len(turns) == 0 {
		return "", nil, badParams(wantTurns)
	}
	return run, turns, nil
}

// slug makes of an agent's name what stands behind "name:" in its id: ASCII letters (lower case) and digits, with one hyphen
// for each run of anything else; "" when nothing is left.
func slug(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if r < 'a' || r > 'z' {
			if r < '0' || r > '9' {
				gap = b.Len() > 0
				continue
			}
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// newUUID makes a UUID of version 7 (RFC 9562): those that are made later sort behind, to the millisecond.
func newUUID() string { return uuid.Must(uuid.NewV7()).String() }
