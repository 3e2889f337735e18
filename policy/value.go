package policy

import (
	"bytes"
	"encoding/json"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A Value is one JSON value of the state. The zero Value is null. It is immutable.
type Value struct{ raw, canonical []byte }

// NewValue takes the one JSON value in raw, which it copies. No bytes are null. The error says at which byte raw has no single
// meaning: it is not JSON, a key stands twice, it is nested too deeply.
func NewValue(raw []byte) (Value, error) {
	if len(raw) == 0 {
		return Value{}, nil
	}
	canonical, err := canonjson.Canonical(raw)
	if err != nil {
		return Value{}, err
	}
	if bytes.Equal(raw, canonical) {
		return Value{canonical, canonical}, nil
	}
	return Value{bytes.Clone(raw), canonical}, nil
}

// Raw returns the JSON as it came, which the caller must not change.
func (v Value) Raw() json.RawMessage {
	if v.raw == nil {
		return json.RawMessage("null")
	}
	return v.raw
}

// Canonical returns the canonical JSON of v, which the caller must not change.
func (v Value) Canonical() []byte {
	if v.canonical == nil {
		return []byte("null")
	}
	return v.canonical
}

// Equal reports whether v and w are the same value: 1 and 1.0 are, and objects whose keys stand in another order.
func (v Value) Equal(w Value) bool { return bytes.Equal(v.Canonical(), w.Canonical()) }

// Size returns how many bytes v holds.
func (v Value) Size() int { return len(v.raw) + len(v.canonical) }
