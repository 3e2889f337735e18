package client

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

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
