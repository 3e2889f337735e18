package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
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
