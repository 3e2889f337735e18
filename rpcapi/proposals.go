package rpcapi

import "github.com/tapedeck-dev/tapedeck/proposal"

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
