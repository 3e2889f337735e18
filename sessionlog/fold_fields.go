package sessionlog

// A field is a key of an event that is read without decoding the whole.
type field uint8

const (
	fieldNone field = iota
	fieldKind
	fieldTurn
	fieldReason
	fieldPendingCalls
	fieldAgentID
	fieldParentSessionID
	fieldState
	fieldBudget
	fieldOperationID
	fieldReservationID
	fieldTokens
	fieldSubagents
	fieldRounds
	fieldSignalID
	fieldDisposition
	fieldQueueDepth
	fieldDeliveryID
	fieldAttempt
	fieldPendingCallIDs
	fieldCallID
	fieldCalls
	fieldResults
	fieldMessage
	fieldToolCalls
	fieldDenied
	numFields
)

var fieldNames = [numFields]string{
	fieldKind: "kind", fieldTurn: "turn", fieldReason: "reason", fieldPendingCalls: "pending_calls", fieldAgentID: "agent_id",
	fieldParentSessionID: "parent_session_id", fieldState: "state", fieldBudget: "budget", fieldOperationID: "operation_id",
	fieldReservationID: "reservation_id", fieldTokens: "tokens", fieldSubagents: "subagents", fieldRounds: "rounds",
	fieldSignalID: "signal_id", fieldDisposition: "disposition", fieldQueueDepth: "queue_depth", fieldDeliveryID: "delivery_id",
	fieldAttempt: "attempt", fieldPendingCallIDs: "pending_call_ids",
	fieldCallID: "call_id", fieldCalls: "calls", fieldResults: "results", fieldMessage: "message", fieldToolCalls: "tool_calls", fieldDenied: "denied",
}

var fieldsByName = func() map[string]field {
	all := make(map[string]field, numFields)
	for at, name := range fieldNames {
		all[name] = field(at)
	}
	delete(all, fieldNames[fieldNone])
	return all
}()
