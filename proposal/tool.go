package proposal

import (
	"context"
	"encoding/json"
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
	Call func(ctx context.Context, c *Call) (output json.RawMessage, err error)

	schema *schema
}

// NewTool makes a tool of its definition. The error says why the schema is refused.
func NewTool(d Definition, call func(context.Context, *Call) (json.RawMessage, error)) (*Tool, error) {
	s, err := compileSchema(d.Name, d.Parameters)
	if err != nil {
		return nil, err
	}
	return &Tool{d, call, s}, nil
}
