package rpcapi

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
