package tape

import "encoding/json"

// SentKey is a further key of an llm_call of a fork: what left in the place of the request that the program sent.
const SentKey = "sent"

// A Sent says what of a request was changed before it left.
type Sent struct {
	Model   string   `json:"model,omitempty"` // that was asked; "" for that of the request
	Changed []string `json:"changed"`         // "model", "system", "tool ID"
}

// SentFields is that key.
func SentFields(s *Sent) []Field {
	b, _ := json.Marshal(s) // strings alone
	return []Field{{Name: SentKey, Value: b}}
}

// SentOf is what a call of a fork changed; nil for nothing.
func SentOf(k *LLMCall) *Sent {
	s := new(Sent)
	if raw := FieldValue(k.Extra, SentKey); raw == nil || json.Unmarshal(raw, s) != nil {
		return nil
	}
	return s
}
