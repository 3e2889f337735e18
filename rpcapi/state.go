package rpcapi

import "encoding/json"

// StateParams of state.get, .set, .exists, .keys and .snapshot. A tenant sees its own keys alone; absent is a tenant too.
type StateParams struct {
	Key      string          `json:"key,omitempty"`   // required by get, set and exists
	Value    json.RawMessage `json:"value,omitempty"` // of set
	TenantID string          `json:"tenant_id,omitempty"`
}
