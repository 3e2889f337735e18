package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
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

// A denyRegex denies what a pattern matches.
type denyRegex struct {
	target, key string
	pattern     *boundedregexp.Regexp
	reason      string
}

func compileRegex(r *Rule) (judge, *RuleError) {
	if err := need(r, "pattern"); err != nil {
		return nil, err
	}
	m, err := boundedregexp.Compile(r.Pattern)
	if err != nil {
		return nil, wrong(r, "pattern", "%v", err)
	}
	what := "a param"
	if r.Key != "" {
		what = fmt.Sprintf("param '%s'", shorten(r.Key))
	}
	return &denyRegex{r.Target, r.Key, m, fmt.Sprintf("%s matches '%s'", what, shorten(r.Pattern))}, nil
}

func (d *denyRegex) against(s *subject) string {
	if s.action.Tool == "" || d.target != "" && s.action.Tool != d.target || s.action.Parameters == nil {
		return ""
	}
	v := &s.action.Parameters.tree
	if d.key != "" {
		var ok bool
		if v, ok = s.action.Parameters.get(d.key); !ok {
			return ""
		}
	}
	for text := range s.texts(v) {
		yes, err := s.scratch().match(d.pattern, text)
		if err != nil {
			return "it cannot be judged, which denies: " + err.Error()
		}
		if yes {
			return d.reason
		}
	}
	return ""
}
