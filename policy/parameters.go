package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Parameters are those of one action, read once for all rules. They are immutable, and may be used by several goroutines.
// A nil *Parameters is an empty object.
type Parameters struct {
	raw    json.RawMessage
	tree   canonjson.Value
	once   sync.Once
	digest cas.Digest
}

// ParseParameters reads parameters. No bytes and null are an empty object. Anything else that is no object, and what has no
// single meaning (a key that stands twice, bytes that are not UTF-8), is an error: no rule could say what the tool would see.
// raw is kept, and must not be changed.
func ParseParameters(raw []byte) (*Parameters, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	tree, err := canonjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	switch tree.Kind {
	case canonjson.Object:
		return &Parameters{raw: raw, tree: tree}, nil
	case canonjson.Null:
		return nil, nil
	}
	return nil, fmt.Errorf("expected an object, got %s %s", article(tree.Kind), tree.Kind)
}

// Raw returns the JSON as it came, which the caller must not change; "{}" where there was none.
func (p *Parameters) Raw() json.RawMessage {
	if p == nil {
		return json.RawMessage("{}")
	}
	return p.raw
}

// Keys returns the names of the parameters, sorted.
func (p *Parameters) Keys() []string {
	keys := []string{}
	if p != nil {
		for i := range p.tree.Members {
			keys = append(keys, p.tree.Members[i].Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// noParameters is the digest of "{}".
var noParameters = cas.Sum([]byte("{}"))

// Digest returns the BLAKE3-256 of the canonical JSON of the parameters. It is computed at the first call.
func (p *Parameters) Digest() cas.Digest {
	if p == nil {
		return noParameters
	}
	p.once.Do(func() { p.digest = cas.Sum(p.tree.Append(make([]byte, 0, len(p.raw)))) })
	return p.digest
}

// Map returns the parameters as Go values: nil, bool, string, []any, map[string]any, and of numbers int where one is whole and
// fits, else the nearest float64. It is made anew with each call.
func (p *Parameters) Map() map[string]any {
	if p == nil {
		return map[string]any{}
	}
	return plain(&p.tree).(map[string]any)
}

// get returns the parameter of that name.
func (p *Parameters) get(key string) (*canonjson.Value, bool) {
	if p == nil {
		return nil, false
	}
	for i := range p.tree.Members {
		if m := &p.tree.Members[i]; m.Key == key {
			return &m.Value, true
		}
	}
	return nil, false
}

func article(k canonjson.Kind) string {
	if k == canonjson.Array {
		return "an"
	}
	return "a"
}
