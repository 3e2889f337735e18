package exchange

import (
	"bytes"
	"encoding/json"
)

// NotOnTape is the type, in an error object, of a request that the tape does not answer.
const NotOnTape = "not_on_tape"

// ErrorBody is the body of an answer of our own: the provider's error object around a message where id, which may be nil,
// names a provider, else {"error":{"type":kind,"message":message}} and a newline.
func ErrorBody(id *Identity, status int, kind, message string) []byte {
	if id != nil && id.ErrorBody != nil {
		return id.ErrorBody(status, message)
	}
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)                                                   // people read the message
	_ = enc.Encode(map[string]detail{"error": {Type: kind, Message: message}}) // strings always have a JSON form
	return b.Bytes()
}
