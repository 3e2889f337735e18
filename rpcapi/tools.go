package rpcapi

import (
	"encoding/json"
	"errors"

	"github.com/tapedeck-dev/tapedeck/proposal"
)

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

// PolicyRegisterParams is a rule and where it holds: for every proposal of the connection, or for those that are submitted
// under SessionID (of session.policy.open).
type PolicyRegisterParams struct {
	PolicyRule
	SessionID string `json:"session_id,omitempty"`
}

// PolicyRegisterResult is the reply to policy.register; Registered is the name again.
type PolicyRegisterResult struct {
	Name       string `json:"name"`
	Registered string `json:"registered"`
	Scope      Scope  `json:"scope"`
}

// PolicyUnregisterParams names a policy of one scope.
type PolicyUnregisterParams struct {
	Name      string `json:"name"` // required
	SessionID string `json:"session_id,omitempty"`
}

// PolicyUnregisterResult is the reply to policy.unregister. Removed counts: one name may stand for several policies.
type PolicyUnregisterResult struct {
	Unregistered string `json:"unregistered"`
	Removed      int    `json:"removed"`
	Scope        Scope  `json:"scope"`
}

// PolicyListParams names the scope to list.
type PolicyListParams struct {
	SessionID string `json:"session_id,omitempty"`
}

// PolicyListResult is the reply to policy.list, in the order of registration.
type PolicyListResult struct {
	Policies []PolicyInfo `json:"policies"`
	Scope    Scope        `json:"scope"`
}

// PolicyInfo is one policy of a list.
type PolicyInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// PolicyCheckParams (ours) asks the daemon's own policies about a call without running anything.
type PolicyCheckParams struct {
	Tool       string          `json:"tool"` // required
	Parameters json.RawMessage `json:"parameters,omitempty"`
	ActionID   string          `json:"action_id,omitempty"`
	RunID      string          `json:"run_id,omitempty"` // one's own open run: the verdict is kept with it
	Wait       bool            `json:"wait,omitempty"`   // for a person, where a policy asks one; else that denies
}

// PolicyCheckResult is the reply to policy.check, and a verdict of runs.verdicts: what was judged and by what, by digests
// (BLAKE3, in hex), and the decision.
type PolicyCheckResult struct {
	PolicySet    string         `json:"policy_set"`
	ActionID     string         `json:"action_id"`
	Type         string         `json:"type,omitempty"` // of the action: tool_call, state_write, state_read, assertion
	Tool         string         `json:"tool"`
	ParamsDigest string         `json:"params_digest"`
	Verdict      PolicyDecision `json:"verdict"`
}

// PolicyDecision is "allow", or "deny" with the reason and every violation.
type PolicyDecision struct {
	Kind       string      `json:"kind"`
	Reason     string      `json:"reason,omitempty"`
	Violations []Violation `json:"violations,omitempty"`
	Approval   *Approval   `json:"approval,omitempty"` // of a person, where rules asked for one
}

// SessionPolicyOpenResult is the reply to session.policy.open.
type SessionPolicyOpenResult struct {
	SessionID string `json:"session_id"`
}

// SessionPolicyCloseParams names the scope to close: its policies go with it.
type SessionPolicyCloseParams struct {
	SessionID string `json:"session_id"` // required
}

// SessionPolicyCloseResult is the reply to session.policy.close: whether such a scope was open.
type SessionPolicyCloseResult struct {
	Closed bool `json:"closed"`
}

// ProposalSubmitParams is a proposal and under what it runs.
type ProposalSubmitParams struct {
	Proposal *Proposal `json:"proposal"` // required
	// SessionID (of session.policy.open) puts the policies of that scope in force, beside those of the connection. One that is
	// not open rejects every action.
	SessionID string `json:"session_id,omitempty"`
	// Scope names the tenant whose state the actions see.
	Scope *ProposalScope `json:"scope,omitempty"`
	// Idempotent (ours) says that the same proposal id under the same connection is the same proposal: it runs once, and a
	// submission that comes again gets the first one's result.
	Idempotent bool `json:"idempotent,omitempty"`
}

// ProposalScope is who a proposal is for. Its keys are the public protocol's.
type ProposalScope struct {
	CallerID string `json:"callerId,omitempty"`
	TenantID string `json:"tenantId,omitempty"`
}

// ProposalSubmitResult is the reply to proposal.submit. A tool that failed, or an action that a policy rejected, is a result
// and no error.
type ProposalSubmitResult = proposal.Result

// Scope is where a policy holds: "global" on the wire (for the whole connection) when SessionID is "", else
// {"session_id":…}.
type Scope struct{ SessionID string }

// MarshalJSON writes a scope as the wire has it.
func (s Scope) MarshalJSON() ([]byte, error) {
	if s.SessionID == "" {
		return []byte(`"global"`), nil
	}
	return json.Marshal(scopeObject(s))
}

// UnmarshalJSON reads both forms.
func (s *Scope) UnmarshalJSON(b []byte) error {
	var word string
	if json.Unmarshal(b, &word) == nil {
		if word != "global" && word != "" {
			return errors.New(`want "global" or {"session_id":…}, got another word`)
		}
		*s = Scope{}
		return nil
	}
	var o scopeObject
	err := json.Unmarshal(b, &o)
	*s = Scope(o)
	return err
}

type scopeObject struct {
	SessionID string `json:"session_id"`
}
