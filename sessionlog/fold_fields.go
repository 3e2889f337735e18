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

// fieldOf is a switch and no map: it is asked for every key of every event.
func fieldOf(key []byte) field {
	switch string(key) {
	case "kind":
		return fieldKind
	case "turn":
		return fieldTurn
	case "reason":
		return fieldReason
	case "pending_calls":
		return fieldPendingCalls
	case "agent_id":
		return fieldAgentID
	case "parent_session_id":
		return fieldParentSessionID
	case "state":
		return fieldState
	case "budget":
		return fieldBudget
	case "operation_id":
		return fieldOperationID
	case "reservation_id":
		return fieldReservationID
	case "tokens":
		return fieldTokens
	case "subagents":
		return fieldSubagents
	case "rounds":
		return fieldRounds
	case "signal_id":
		return fieldSignalID
	case "disposition":
		return fieldDisposition
	case "queue_depth":
		return fieldQueueDepth
	case "delivery_id":
		return fieldDeliveryID
	case "attempt":
		return fieldAttempt
	case "pending_call_ids":
		return fieldPendingCallIDs
	case "call_id":
		return fieldCallID
	case "calls":
		return fieldCalls
	case "results":
		return fieldResults
	case "message":
		return fieldMessage
	case "tool_calls":
		return fieldToolCalls
	case "denied":
		return fieldDenied
	}
	return fieldNone
}
