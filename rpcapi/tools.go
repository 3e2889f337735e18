package rpcapi

import "encoding/json"

// Tool is one tool that the client serves when it is called back with tools.execute.
type Tool struct {
	Name        string `json:"name"` // required
	Description string `json:"description,omitempty"`
	// Parameters is the JSON Schema of the tool's parameters; empty, null and {} let anything pass.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Idempotent bool            `json:"idempotent,omitempty"`
}

// ToolsRegisterParams of tools.register is a list, not an object; its result is the number of tools registered.
type ToolsRegisterParams []Tool

// ToolsListResult is the reply to tools.list, sorted by name.
type ToolsListResult struct {
	Tools []ToolInfo `json:"tools"`
	Count int        `json:"count"`
}

// ToolInfo is one tool of a list.
type ToolInfo struct {
	Name        string          `json:"name"`
	Source      string          `json:"source"` // SourceClient or SourceBuiltin
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // the schema as it was registered, {} without one
	Idempotent  bool            `json:"idempotent"`
}

// Who serves a tool.
const (
	SourceClient  = "user_defined"
	SourceBuiltin = "builtin"
)

// ToolsUnregisterParams names the tool to forget.
type ToolsUnregisterParams struct {
	Name string `json:"name"` // required
}

// ToolsUnregisterResult is the reply to tools.unregister; Removed is 0 or 1.
type ToolsUnregisterResult struct {
	Unregistered string `json:"unregistered"`
	Removed      int    `json:"removed"`
}

// ToolsExecuteParams of the daemon's call tools.execute. The result of the reply is the tool's output as it is, an error
// its failure.
type ToolsExecuteParams struct {
	ActionID   string          `json:"action_id"`
	Tool       string          `json:"tool"`
	Parameters json.RawMessage `json:"parameters"`
	Params     json.RawMessage `json:"params"` // the same again: clients of the public protocol read one or the other
	TimeoutMS  *int64          `json:"timeout_ms,omitempty"`
	Attempt    int             `json:"attempt"`    // from 1
	RequestID  string          `json:"request_id"` // the id of the call itself
	SessionID  string          `json:"session_id,omitempty"`
}

// ToolsCancelParams of the daemon's notification tools.cancel: nobody waits for that call any longer.
type ToolsCancelParams struct {
	RequestID string `json:"request_id"`
	ActionID  string `json:"action_id"`
	Reason    string `json:"reason"`
}
