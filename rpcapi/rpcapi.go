// Package rpcapi holds what the daemon's methods take and give: one struct for the params and one for the result of each
// method, the names of the methods, the codes of the errors. The definition is spec/agent-daemon.md, which is wire-compatible
// with the public CAR protocol for these methods.
//
// Goals: both sides of the wire (package client, the daemon) and whoever reads its replies share one definition.
//
// Non-goals: it calls nothing and checks nothing. What is decided about a value (a run id that is no plain name, a version
// that is not spoken) is decided by the daemon.
//
// Grammar: JSON. Input is lenient: keys that are not known are ignored, absent and null are the same, and but for what the
// comment of a field calls required all may be absent. Output is exact: every key that a comment does not call optional
// stands in every reply, lists are [] and never null.
//
// Compatibility: a field is never renamed or removed within a ProtocolVersion; new optional ones may come. Methods and fields
// that the public protocol does not have are marked "ours".
package rpcapi

import (
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// The protocol versions that server.handshake accepts: every one from Min to Max says the same about the methods here.
const (
	MinProtocolVersion = 1
	MaxProtocolVersion = 3
	// ProtocolVersion is the one that our own client asks for.
	ProtocolVersion = MaxProtocolVersion
)

// Methods that a client calls.
const (
	SessionAuth        = "session.auth"
	SessionInit        = "session.init"
	ServerHandshake    = "server.handshake"
	ToolsRegister      = "tools.register"
	ToolsList          = "tools.list"
	ToolsUnregister    = "tools.unregister"
	PolicyRegister     = "policy.register"
	PolicyUnregister   = "policy.unregister"
	PolicyList         = "policy.list"
	PolicyCheck        = "policy.check" // ours
	SessionPolicyOpen  = "session.policy.open"
	SessionPolicyClose = "session.policy.close"
	StateGet           = "state.get"
	StateSet           = "state.set"
	StateExists        = "state.exists"
	StateKeys          = "state.keys"
	StateSnapshot      = "state.snapshot"
	ProposalSubmit     = "proposal.submit"
	RunsStart          = "runs.start"
	RunsComplete       = "runs.complete"
	RunsRecordTurns    = "runs.record_turns"
	RunsSubscribe      = "runs.subscribe"
	RunsUnsubscribe    = "runs.unsubscribe"
	RunsList           = "runs.list"
	RunsGetTrace       = "runs.get_trace"
	RunsVerdicts       = "runs.verdicts" // ours

	SupervisionSubscribe   = "supervision.subscribe"
	SupervisionUnsubscribe = "supervision.unsubscribe" // ours
	SupervisionPending     = "supervision.pending"
	SupervisionDecide      = "supervision.decide"
)

// Methods that the daemon calls, and its notifications.
const (
	ToolsExecute   = "tools.execute"    // a call: its reply's result is the tool's output
	ToolsCancel    = "tools.cancel"     // a notification
	RunsTraceEvent = "runs.trace.event" // a notification
	RunsTraceLost  = "runs.trace.lost"  // a notification (ours): events were dropped, and from where to catch up

	SupervisionIntent = "supervision.intent" // a notification: something waits for a decision
)

// Codes of errors. Text beside a code is for people: decide on the code.
const (
	CodeParse          = -32700 // not JSON
	CodeInvalidRequest = -32600 // JSON, and no request; also a batch
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602 // params of the wrong shape, a name or an id that is none
	CodeInternal       = -32603 // it could not be done: a wrong token, a run that is not there or not yours, a failed store
	CodeBusy           = -32000 // ours: too much of this connection in flight, or shutting down: try again later
	CodeAuthRequired   = -32001 // no session.auth yet; the connection closes
	CodeApproval       = -32003 // denied by a person, or nobody answered in time
	CodeDeadline       = -32004 // the handler's deadline has passed
	CodeVersion        = -32006 // a protocol version that is not spoken
	CodeCapability     = -32008 // a capability that the client cannot do without and the daemon does not have
)

// Values of the wire that rooms of their own define.
type (
	// PolicyRule is one rule. Ours are regex, expr and approve.
	PolicyRule = policy.Rule
	// Violation is one policy that stands against one action.
	Violation = policy.Violation
	// Approval is the word of a person who allowed what rules asked one about.
	Approval = policy.Approval
	// Proposal is what proposal.submit runs.
	Proposal = proposal.Proposal
	// Action is one action of a proposal.
	Action = proposal.Action
	// Precondition is what the state must be like before an action.
	Precondition = proposal.Precondition
	// ActionResult is what became of one action.
	ActionResult = proposal.ActionResult
	// Cost counts what a proposal took.
	Cost = proposal.Cost
	// Turn is one step of a run.
	Turn = runtrace.Turn
	// Outcome is what a run came to, as its agent says.
	Outcome = runtrace.Outcome
	// Recording names the recording of a run that is recorded beside the daemon (ours).
	Recording = runtrace.Recording
)

// SessionAuthParams opens a connection. One of Token and HostToken is required where auth is on.
type SessionAuthParams struct {
	Token     string `json:"token,omitempty"`
	HostToken string `json:"host_token,omitempty"`
	// AgentID binds the connection to that agent: it owns the runs of this agent and of no other.
	AgentID string `json:"agent_id,omitempty"`
}

// RoleHost is the role of a connection that came with the host token: it reads every run and writes none.
const RoleHost = "host"

// SessionAuthResult is the reply to session.auth. A wrong token is CodeInternal, as the public protocol has it, and another
// session.auth may follow.
type SessionAuthResult struct {
	OK          bool   `json:"ok"`
	AuthEnabled bool   `json:"auth_enabled"`
	AgentID     string `json:"agent_id,omitempty"` // when one was bound
	Role        string `json:"role,omitempty"`     // RoleHost for the host token
}

// HandshakeParams names the version that the client speaks. What a version from 3 on cannot do without it lists as
// RequiredCapabilities.
type HandshakeParams struct {
	ProtocolVersion      int      `json:"protocol_version"` // required
	ClientVersion        string   `json:"client_version,omitempty"`
	RequiredCapabilities []string `json:"required_capabilities,omitempty"`
	OptionalCapabilities []string `json:"optional_capabilities,omitempty"`
}

// HandshakeResult is the reply to server.handshake. ProtocolVersion is the client's: every one that is accepted says the
// same about the methods here.
type HandshakeResult struct {
	ProtocolVersion       int    `json:"protocol_version"`
	ServerVersion         string `json:"server_version"`
	ClientProtocolVersion int    `json:"client_protocol_version"`
	// What follows came with version 3 and is in every reply.
	ClientVersion          string   `json:"client_version"`
	AssistantName          string   `json:"assistant_name"`
	AssistantAliases       []string `json:"assistant_aliases"`
	AssistantBrand         string   `json:"assistant_brand"`
	NegotiatedCapabilities []string `json:"negotiated_capabilities"`
}

// SessionInitParams registers tools and policies at once: all of them or, with an error, none. ClientID is what the client calls itself;
// the runs that it starts from then on keep it.
type SessionInitParams struct {
	ClientID string                 `json:"client_id,omitempty"`
	Tools    []Tool                 `json:"tools"`
	Policies []PolicyRegisterParams `json:"policies,omitempty"`
}

// SessionInitResult is the reply to session.init.
type SessionInitResult struct {
	SessionID          string `json:"session_id"`
	ToolsRegistered    int    `json:"tools_registered"`
	PoliciesRegistered int    `json:"policies_registered"`
}

// StateOK is the result of state.set. That of state.get is the value itself (null when there is none), of state.exists a
// boolean, of state.keys a list of names in order, of state.snapshot an object.
const StateOK = "ok"

// StateParams of state.get, .set, .exists, .keys and .snapshot. A tenant sees its own keys alone, and so does who names none.
type StateParams struct {
	Key      string          `json:"key,omitempty"`   // required by get, set and exists
	Value    json.RawMessage `json:"value,omitempty"` // of set
	TenantID string          `json:"tenant_id,omitempty"`
}
