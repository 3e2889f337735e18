package rpcapi

import "encoding/json"

// PolicyRule is one rule as the wire has it.
type PolicyRule struct {
	Name    string          `json:"name"` // required
	Rule    string          `json:"rule"` // required: deny_tool, deny_tool_param, require_state; ours: regex, expr
	Target  string          `json:"target,omitempty"`
	Key     string          `json:"key,omitempty"`
	Pattern string          `json:"pattern,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// Outcome is what a run came to, as its agent says.
type Outcome struct {
	Status    string          `json:"status"` // required: success, partial_success, give_up, timeout, failure or done
	Summary   string          `json:"summary,omitempty"`
	Evidence  json.RawMessage `json:"evidence,omitempty"`
	Metrics   json.RawMessage `json:"metrics,omitempty"`
	Timestamp string          `json:"timestamp,omitempty"`
}

// Recording names the recording of a run that is recorded beside the daemon (ours).
type Recording struct {
	ID   string `json:"id"`
	Path string `json:"path,omitempty"`
}
