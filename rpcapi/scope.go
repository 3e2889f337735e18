package rpcapi

import (
	"encoding/json"
	"errors"
)

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
