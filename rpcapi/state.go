package rpcapi

import "encoding/json"

// StateOK is the result of state.set. That of state.get is the value itself (null when there is none), of state.exists a
// boolean, of state.keys a list of names in order, of state.snapshot an object.
const StateOK = "ok"

// StateParams of state.get, .set, .exists, .keys and .snapshot. A tenant sees its own keys alone, and so does who names none.
type StateParams struct {
	Key      string          `json:"key,omitempty"`   // required by get, set and exists
	Value    json.RawMessage `json:"value,omitempty"` // of set
	TenantID string          `json:"tenant_id,omitempty"`
}
