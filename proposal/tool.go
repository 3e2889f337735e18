package proposal

import (
	"context"
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// A Definition is a tool as a client registers it.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema; no bytes, null and {} are none: anything passes
}

// A Tool is a registered tool.
type Tool struct {
	Definition
	// Call runs the tool once. ctx ends with the action's timeout_ms and with the proposal. The output is kept as it is.
	Call   func(ctx context.Context, c *Call) (output json.RawMessage, err error)
	Schema Schema // nil lets anything pass
}

// A Schema checks the parameters of a tool's calls; toolschema compiles them.
type Schema interface {
	// Problem says what of the parameters is not allowed, for people; "" is nothing.
	Problem(tool string, parameters *policy.Parameters) string
}
