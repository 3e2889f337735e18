package rpcapi

import (
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/runtrace"
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
