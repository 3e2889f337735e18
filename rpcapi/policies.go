package rpcapi

import "encoding/json"

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
