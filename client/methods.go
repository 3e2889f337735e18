package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// RegisterTools adds tools, or replaces those of the same names.
func (c *Client) RegisterTools(ctx context.Context, tools ...Tool) error {
	if err := c.tools.add(tools); err != nil {
		return err
	}
	list := make(rpcapi.ToolsRegisterParams, len(tools))
	for i := range tools {
		list[i] = tools[i].wire()
	}
	return c.Call(ctx, rpcapi.ToolsRegister, list, nil)
}

// UnregisterTool tells whether there was such a tool.
func (c *Client) UnregisterTool(ctx context.Context, name string) (removed bool, err error) {
	c.tools.remove(name)
	var res rpcapi.ToolsUnregisterResult
	err = c.Call(ctx, rpcapi.ToolsUnregister, rpcapi.ToolsUnregisterParams{Name: name}, &res)
	return res.Removed > 0, err
}

// ListTools lists the tools that proposals of this connection can call, the daemon's built-in ones included, by name.
func (c *Client) ListTools(ctx context.Context) ([]rpcapi.ToolInfo, error) {
	var res rpcapi.ToolsListResult
	err := c.Call(ctx, rpcapi.ToolsList, nil, &res)
	return res.Tools, err
}

// RegisterPolicy adds a rule, for every proposal of this client or for those of one policy session.
func (c *Client) RegisterPolicy(ctx context.Context, p rpcapi.PolicyRegisterParams) error {
	if err := c.Call(ctx, rpcapi.PolicyRegister, p, nil); err != nil || p.SessionID != "" {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policies = append(c.policies, p)
	return nil
}

// UnregisterPolicy takes the rules of that name out of the global scope, or out of a policy session, and tells how many there
// were.
func (c *Client) UnregisterPolicy(ctx context.Context, name, session string) (removed int, err error) {
	var res rpcapi.PolicyUnregisterResult
	p := rpcapi.PolicyUnregisterParams{Name: name, SessionID: session}
	if err := c.Call(ctx, rpcapi.PolicyUnregister, p, &res); err != nil || session != "" {
		return res.Removed, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policies = slices.DeleteFunc(c.policies, func(p rpcapi.PolicyRegisterParams) bool { return p.Name == name })
	return res.Removed, nil
}

// Policies lists the rules of the global scope, or of a policy session.
func (c *Client) Policies(ctx context.Context, session string) ([]rpcapi.PolicyInfo, error) {
	var res rpcapi.PolicyListResult
	err := c.Call(ctx, rpcapi.PolicyList, rpcapi.PolicyListParams{SessionID: session}, &res)
	return res.Policies, err
}

// OpenPolicySession makes a scope for policies beside the global one: they hold for proposals that are submitted under its id.
func (c *Client) OpenPolicySession(ctx context.Context) (session string, err error) {
	var res rpcapi.SessionPolicyOpenResult
	err = c.Call(ctx, rpcapi.SessionPolicyOpen, struct{}{}, &res)
	return res.SessionID, err
}

// ClosePolicySession tells whether it was open.
func (c *Client) ClosePolicySession(ctx context.Context, session string) (closed bool, err error) {
	var res rpcapi.SessionPolicyCloseResult
	err = c.Call(ctx, rpcapi.SessionPolicyClose, rpcapi.SessionPolicyCloseParams{SessionID: session}, &res)
	return res.Closed, err
}

// Submit has a proposal judged and run; the tools that it asks for are called back meanwhile. What became of each action is in
// the result: an action that failed or was rejected is no error.
func (c *Client) Submit(ctx context.Context, p *rpcapi.Proposal) (*rpcapi.ProposalSubmitResult, error) {
	return c.SubmitAs(ctx, rpcapi.ProposalSubmitParams{Proposal: p})
}

// SubmitAs is Submit under a policy session or with the state of a tenant.
func (c *Client) SubmitAs(ctx context.Context, p rpcapi.ProposalSubmitParams) (*rpcapi.ProposalSubmitResult, error) {
	res := new(rpcapi.ProposalSubmitResult)
	if err := c.Call(ctx, rpcapi.ProposalSubmit, p, res); err != nil {
		return nil, err
	}
	return res, nil
}

// CheckPolicy asks the daemon's own policies about a call, without running anything.
func (c *Client) CheckPolicy(ctx context.Context, p rpcapi.PolicyCheckParams) (*rpcapi.PolicyCheckResult, error) {
	res := new(rpcapi.PolicyCheckResult)
	if err := c.Call(ctx, rpcapi.PolicyCheck, p, res); err != nil {
		return nil, err
	}
	return res, nil
}

// Verdicts gives what policies said of a run's actions, in order.
func (c *Client) Verdicts(ctx context.Context, runID string) ([]rpcapi.PolicyCheckResult, error) {
	var res rpcapi.RunsVerdictsResult
	err := c.Call(ctx, rpcapi.RunsVerdicts, rpcapi.RunParams{RunID: runID}, &res)
	return res.Verdicts, err
}

// Runs lists runs, newest first: of one agent, or as the host of all.
func (c *Client) Runs(ctx context.Context, p rpcapi.RunsListParams) ([]rpcapi.RunInfo, error) {
	var res rpcapi.RunsListResult
	err := c.Call(ctx, rpcapi.RunsList, p, &res)
	return res.Runs, err
}

// A State is the state of the connection, or that of one tenant of it.
type State struct {
	c      *Client
	tenant string
}

// State gives the connection's state; a tenant other than "" has its own.
func (c *Client) State(tenant string) *State { return &State{c, tenant} }

// Get gives the value of a key, null when there is none.
func (s *State) Get(ctx context.Context, key string) (value json.RawMessage, err error) {
	err = s.c.Call(ctx, rpcapi.StateGet, rpcapi.StateParams{Key: key, TenantID: s.tenant}, &value)
	return value, err
}

// Set sets a key to what value is as JSON.
func (s *State) Set(ctx context.Context, key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.c.Call(ctx, rpcapi.StateSet, rpcapi.StateParams{Key: key, Value: b, TenantID: s.tenant}, nil)
}

// Exists tells whether a key was set, be it to null.
func (s *State) Exists(ctx context.Context, key string) (exists bool, err error) {
	err = s.c.Call(ctx, rpcapi.StateExists, rpcapi.StateParams{Key: key, TenantID: s.tenant}, &exists)
	return exists, err
}

// Keys lists the keys.
func (s *State) Keys(ctx context.Context) (keys []string, err error) {
	err = s.c.Call(ctx, rpcapi.StateKeys, rpcapi.StateParams{TenantID: s.tenant}, &keys)
	return keys, err
}

// Snapshot gives every key with its value.
func (s *State) Snapshot(ctx context.Context) (values map[string]json.RawMessage, err error) {
	err = s.c.Call(ctx, rpcapi.StateSnapshot, rpcapi.StateParams{TenantID: s.tenant}, &values)
	return values, err
}

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

// A Tool is a function that the daemon calls back when a proposal asks for it.
type Tool struct {
	Name        string
	Description string
	// Parameters is the JSON Schema that the daemon holds the parameters to before it calls; nil lets anything pass.
	Parameters json.RawMessage
	// Run does it. What it returns is encoded as JSON and is the tool's output.
	Run func(ctx context.Context, call *ToolCall) (any, error)
}

// A ToolCall is one call of a tool.
type ToolCall struct {
	Tool       string
	Parameters json.RawMessage
	ActionID   string
	RequestID  string        // of the daemon, unique within a connection
	SessionID  string        // the policy session that it was submitted under, "" for none
	Attempt    int           // from 1
	Timeout    time.Duration // that the action allows, 0 for none; the context has it too
}

// Func makes a tool of a function whose parameters are an object that P is decoded from. Parameters that P cannot be decoded
// from are the tool's failure.
func Func[P any](name, description string, f func(ctx context.Context, parameters P) (any, error)) Tool {
	run := func(ctx context.Context, call *ToolCall) (any, error) {
		var p P
		if len(call.Parameters) > 0 {
			if err := json.Unmarshal(call.Parameters, &p); err != nil {
				return nil, fmt.Errorf("parameters of %s: %w", name, err)
			}
		}
		return f(ctx, p)
	}
	return Tool{Name: name, Description: description, Run: run}
}

// tools are those of a client; they outlive connections.
type tools struct {
	mu     sync.Mutex
	byName map[string]Tool
}

func (t *tools) add(list []Tool) error {
	for i := range list {
		if list[i].Name == "" || list[i].Run == nil {
			return fmt.Errorf("tool %d: want a name and a function to run, got name %q and %t", i, list[i].Name, list[i].Run != nil)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName == nil {
		t.byName = make(map[string]Tool)
	}
	for _, tool := range list {
		t.byName[tool.Name] = tool
	}
	return nil
}

func (t *tools) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, name)
}

func (t *tools) get(name string) (Tool, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tool, ok := t.byName[name]
	return tool, ok
}

func (t *tools) list() rpcapi.ToolsRegisterParams {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list rpcapi.ToolsRegisterParams
	for _, tool := range t.byName {
		list = append(list, tool.wire())
	}
	slices.SortFunc(list, func(a, b rpcapi.Tool) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (t *Tool) wire() rpcapi.Tool {
	return rpcapi.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
}

// run runs a tool for a call of the daemon; a panic is an error.
func (t *tools) run(ctx context.Context, p *rpcapi.ToolsExecuteParams, log *slog.Logger) (output any, err error) {
	tool, ok := t.get(p.Tool)
	if !ok {
		return nil, fmt.Errorf("tool %q is not one of this client", p.Tool)
	}
	call := &ToolCall{
		Tool: p.Tool, Parameters: p.Parameters, ActionID: p.ActionID, RequestID: p.RequestID, SessionID: p.SessionID, Attempt: p.Attempt,
	}
	if p.TimeoutMS != nil && *p.TimeoutMS > 0 {
		call.Timeout = time.Duration(*p.TimeoutMS) * time.Millisecond
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, call.Timeout)
		defer cancel()
	}
	defer func() {
		if r := recover(); r != nil {
			log.Error("a tool panicked", "tool", p.Tool, "panic", r, "stack", string(debug.Stack()))
			output, err = nil, fmt.Errorf("tool %s panicked: %v", p.Tool, r)
		}
	}()
	return tool.Run(ctx, call)
}

// maxEarly bounds the cancellations that are kept for calls that have not begun.
const maxEarly = 1024

// calls are the tools that run for one connection, by the daemon's request ids.
type calls struct {
	mu      sync.Mutex
	running map[string]context.CancelCauseFunc
	early   map[string]string // cancelled before the goroutine of the call came to begin
}

// begin gives the call its context; end must be called.
func (s *calls) begin(ctx context.Context, id string) (called context.Context, end func()) {
	called, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason, ok := s.early[id]; ok {
		delete(s.early, id)
		cancel(&CancelledError{reason})
	}
	if s.running == nil {
		s.running = make(map[string]context.CancelCauseFunc)
	}
	s.running[id] = cancel
	return called, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, id)
		cancel(nil)
	}
}

// cancel ends the call's context, at once or as soon as it begins.
func (s *calls) cancel(id, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, ok := s.running[id]; ok {
		cancel(&CancelledError{reason})
	} else if len(s.early) < maxEarly {
		if s.early == nil {
			s.early = make(map[string]string)
		}
		s.early[id] = reason
	}
}
