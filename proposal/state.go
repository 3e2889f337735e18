package proposal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/policy"
)

// Limits of a State, all tenants together.
const (
	MaxStateKeys  = 100_000
	MaxStateBytes = 64 << 20 // of keys and values
	MaxStateKey   = 1 << 10  // bytes of one key, and of a tenant's name
	MaxStateValue = 4 << 20  // bytes of the JSON of one value
)

// A LimitError says that a state takes no more.
type LimitError struct{ Problem string }

func (e *LimitError) Error() string { return "state: " + e.Problem }

// A State keeps the values of one connection, apart for each tenant. The zero State is empty and ready. It may be used by
// several goroutines at once.
//
// A write of a proposal is seen by everybody at once. A key therefore has versions: what it had before, and on it what
// proposals that still run have written. The last one is its value. A proposal that ends well makes its own the only one; one
// that is aborted takes its own away, wherever they lie, so that nothing else is lost or comes back.
type State struct {
	// Room, where it is set, is asked for the bytes by which the state grows, beside its own limits; it refuses with false. It is
	// told, with less than 0, of those by which it shrinks. It is set before the first use and called under the state's lock.
	Room func(bytes int) bool

	mu      sync.Mutex
	tenants map[string]map[string][]version // no list is empty
	held    int                             // versions
	bytes   int                             // of them
}

// A version is a value and the proposal that wrote it; nil is one that has ended, or state.set.
type version struct {
	value   policy.Value
	by      *transaction
	attempt int // of that proposal: which one's
}

// Scope returns the part of s that belongs to tenant; "" is the part of those without one.
func (s *State) Scope(tenant string) *Scope { return &Scope{s, tenant} }

// A Scope is one tenant's part of a State. It implements policy.State.
type Scope struct {
	state  *State
	tenant string
}

// Lookup returns the value of key.
func (c *Scope) Lookup(key string) (policy.Value, bool) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.top(key)
}

// Get returns the JSON of the value of key; null where there is none.
func (c *Scope) Get(key string) json.RawMessage {
	v, _ := c.Lookup(key)
	return v.Raw()
}

// Exists reports whether key has a value, which may be null.
func (c *Scope) Exists(key string) bool {
	_, ok := c.Lookup(key)
	return ok
}

// Keys returns all keys, sorted; not nil.
func (c *Scope) Keys() []string {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	keys := slices.AppendSeq(make([]string, 0, len(c.state.tenants[c.tenant])), maps.Keys(c.state.tenants[c.tenant]))
	slices.Sort(keys)
	return keys
}

// Snapshot returns all values, of one moment; not nil.
func (c *Scope) Snapshot() map[string]json.RawMessage {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	out := make(map[string]json.RawMessage, len(c.state.tenants[c.tenant]))
	for k, versions := range c.state.tenants[c.tenant] {
		out[k] = versions[len(versions)-1].value.Raw()
	}
	return out
}

// Set gives key the value in raw; no bytes are null. The error says that raw has no single meaning, or is a *LimitError.
func (c *Scope) Set(key string, raw []byte) error {
	v, err := newValue(key, raw)
	if err != nil {
		return err
	}
	return c.set(key, v, nil)
}

func newValue(key string, raw []byte) (policy.Value, error) {
	if len(raw) > MaxStateValue {
		return policy.Value{}, &LimitError{fmt.Sprintf("a value of %d bytes, more than %d", len(raw), MaxStateValue)}
	}
	v, err := policy.NewValue(raw)
	if err != nil {
		return v, fmt.Errorf("value of %.100q: %w", key, err)
	}
	return v, nil
}

// top is the value of key. The lock is held.
func (c *Scope) top(key string) (policy.Value, bool) {
	versions := c.state.tenants[c.tenant][key]
	if len(versions) == 0 {
		return policy.Value{}, false
	}
	return versions[len(versions)-1].value, true
}

// set writes a value for a proposal, or for nobody.
func (c *Scope) set(key string, v policy.Value, by *transaction) error {
	if len(key) > MaxStateKey || len(c.tenant) > MaxStateKey {
		return &LimitError{fmt.Sprintf("a name of more than %d bytes", MaxStateKey)}
	}
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	if by == nil {
		return c.put(key, []version{{value: v}}) // what lies beneath is of no use to anybody: nobody takes this one away
	}
	versions := slices.Clone(c.state.tenants[c.tenant][key])
	if n := len(versions); n > 0 && versions[n-1].by == by && versions[n-1].attempt == by.attempt {
		versions = versions[:n-1]
	}
	return c.put(key, append(versions, version{v, by, by.attempt}))
}

// put makes versions those of key, where the limits have room. The lock is held.
func (c *Scope) put(key string, versions []version) error {
	s := c.state
	old := s.tenants[c.tenant][key]
	held, bytes := s.held+len(versions)-len(old), s.bytes+size(key, versions)-size(key, old)
	switch {
	case held > s.held && held > MaxStateKeys:
		return &LimitError{fmt.Sprintf("%d keys, and no more are kept", MaxStateKeys)}
	case bytes > s.bytes && bytes > MaxStateBytes:
		return &LimitError{fmt.Sprintf("%d bytes, and no more are kept", MaxStateBytes)}
	case s.Room != nil && bytes != s.bytes && !s.Room(bytes-s.bytes) && bytes > s.bytes:
		return &LimitError{"no more bytes are kept for this connection"}
	}
	s.held, s.bytes = held, bytes
	if s.tenants == nil {
		s.tenants = make(map[string]map[string][]version)
	}
	if s.tenants[c.tenant] == nil {
		s.tenants[c.tenant] = make(map[string][]version)
	}
	s.tenants[c.tenant][key] = versions
	if len(versions) == 0 {
		delete(s.tenants[c.tenant], key)
	}
	if len(s.tenants[c.tenant]) == 0 {
		delete(s.tenants, c.tenant)
	}
	return nil
}

// size is what versions take of the limit; small ones count as more than their bytes.
func size(key string, versions []version) int {
	n := 0
	for _, v := range versions {
		n += len(key) + v.value.Size() + 64
	}
	return n
}

var errNoKey = errors.New("key is required: expected parameters {\"key\": the state's key, …}")

// stateParams are the parameters of a state_write, a state_read or an assertion, as they stand; what is not there is nil.
type stateParams struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Operator []byte `json:"operator"`
	Expected []byte `json:"expected"`
}

// paramsOf reads parameters, and the key that they name.
func paramsOf(parameters json.RawMessage) (p stateParams, key string, err error) {
	var s jsonscan.Scanner
	s.Reset(parameters)
	if s.Peek() != '{' {
		return p, "", errNoKey
	}
	jsonscan.Into(&s, &p)
	if err := s.End(); err != nil {
		return p, "", err
	}
	if len(p.Key) == 0 || p.Key[0] != '"' {
		return p, "", errNoKey
	}
	return p, key, json.Unmarshal(p.Key, &key)
}

// stateWrite writes parameters.value to parameters.key; its output is the value.
func (r *run) stateWrite(o *Outcome) (json.RawMessage, error) {
	p, key, err := paramsOf(o.Action.Parameters)
	if err != nil {
		return nil, err
	}
	v, err := newValue(key, p.Value)
	if err != nil {
		return nil, err
	}
	if err := r.state.write(key, v); err != nil {
		return nil, err
	}
	o.changed(key, v)
	return v.Raw(), nil
}

// stateRead gives the value of parameters.key; null where there is none.
func (r *run) stateRead(a *Action) (json.RawMessage, error) {
	_, key, err := paramsOf(a.Parameters)
	if err != nil {
		return nil, err
	}
	return r.state.Get(key), nil
}

// assertion checks what parameters say, which have the form of a precondition (with expected in the place of value, if one
// likes), and the preconditions. An assertion that asserts nothing fails.
func (r *run) assertion(a *Action) (json.RawMessage, error) {
	checks, err := assertions(a)
	if err != nil {
		return nil, err
	}
	for i := range checks {
		if problem := checks[i].holds(r.state); problem != "" {
			return nil, fmt.Errorf("assertion failed: %s", problem)
		}
	}
	return json.RawMessage("true"), nil
}

func assertions(a *Action) ([]Precondition, error) {
	checks := a.Preconditions
	if params, key, err := paramsOf(a.Parameters); err == nil {
		p := Precondition{Key: key, Operator: "eq", Value: params.Value}
		if op := params.Operator; len(op) > 0 && string(op) != "null" && json.Unmarshal(op, &p.Operator) != nil {
			p.Operator = string(op) // which is no text, and so unknown
		}
		if params.Expected != nil {
			p.Value = params.Expected
		}
		checks = append(checks[:len(checks):len(checks)], p)
	}
	if len(checks) == 0 {
		return nil, errors.New("assertion failed: it asserts nothing: expected parameters key and value, or preconditions")
	}
	return checks, nil
}

// changed notes a write of the action.
func (o *Outcome) changed(key string, v policy.Value) {
	change := append([]byte(`{"op":"set","value":`), v.Raw()...)
	o.Result.StateChanges[key] = append(change, '}')
}

// A transaction is what one proposal writes to the state, attempt by attempt.
type transaction struct {
	*Scope
	attempt int
	wrote   map[string]bool // keys
	now     map[string]bool // those of the attempt that runs
}

func (c *Scope) begin() *transaction { return &transaction{Scope: c, wrote: make(map[string]bool)} }

// mark begins what one attempt writes, which ends with keep, or with back: there is one at a time.
func (t *transaction) mark() {
	t.attempt++
	t.now = make(map[string]bool)
}

func (t *transaction) write(key string, v policy.Value) error {
	if err := t.set(key, v, t); err != nil {
		return err
	}
	t.wrote[key], t.now[key] = true, true
	return nil
}

// keep keeps what the attempt wrote. What the proposal had there before is of no use any more where nothing lies between.
func (t *transaction) keep() {
	t.change(t.now, func(versions []version) []version {
		i := t.last(versions)
		if i > 0 && versions[i-1].by == t {
			return slices.Delete(versions, i-1, i)
		}
		return versions
	})
}

// back takes away what the attempt wrote.
func (t *transaction) back() {
	t.change(t.now, func(versions []version) []version {
		return slices.DeleteFunc(versions, func(v version) bool { return v.by == t && v.attempt == t.attempt })
	})
}

// commit makes what the proposal wrote stay, all in one moment. What lies on it, of proposals that still run, stays there.
func (t *transaction) commit() {
	t.change(t.wrote, func(versions []version) []version {
		i := t.last(versions)
		if i < 0 {
			return versions // somebody has written it for good since
		}
		versions = versions[i:]
		versions[0].by = nil
		return versions
	})
}

// rollback takes away what the proposal wrote, all in one moment.
func (t *transaction) rollback() {
	t.change(t.wrote, func(versions []version) []version {
		return slices.DeleteFunc(versions, func(v version) bool { return v.by == t })
	})
}

// last is the last version that t wrote; -1 is none.
func (t *transaction) last(versions []version) int {
	for i, v := range slices.Backward(versions) {
		if v.by == t {
			return i
		}
	}
	return -1
}

// change gives each of keys what to makes of its versions, of which it gets a copy.
func (t *transaction) change(keys map[string]bool, to func([]version) []version) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	for key := range keys {
		if versions := t.state.tenants[t.tenant][key]; versions != nil {
			_ = t.put(key, to(slices.Clone(versions))) // fewer versions are within every limit
		}
	}
}

// holds says what keeps p from being true in a state; "" is nothing. A value that is not there is null to eq, neq and contains.
//
//	eq neq            the same JSON value, or not: 1 is 1.0, and the order of keys does not count
//	gt lt gte lte     both are numbers
//	exists not_exists the key has a value, which may be null
//	contains          a string in a string, an element in an array, a key in an object
func (p *Precondition) holds(state policy.State) string {
	have, exists := state.Lookup(p.Key)
	want, err := policy.NewValue(p.Value)
	if err != nil {
		return fmt.Sprintf("state['%.100s']: the value to compare with: %v", p.Key, err)
	}
	var yes bool
	switch p.Operator {
	case "eq":
		yes = have.Equal(want)
	case "neq":
		yes = !have.Equal(want)
	case "exists":
		yes = exists
	case "not_exists":
		yes = !exists
	case "gt", "lt", "gte", "lte":
		var problem string
		if yes, problem = p.compare(have, want); problem != "" {
			return problem
		}
	case "contains":
		yes = contains(have, want)
	default:
		return fmt.Sprintf("unknown operator '%.100s': expected eq, neq, gt, lt, gte, lte, exists, not_exists or contains", p.Operator)
	}
	if yes {
		return ""
	}
	if p.Operator == "exists" || p.Operator == "not_exists" {
		return fmt.Sprintf("state['%.100s'] %s does not hold", p.Key, p.Operator)
	}
	return fmt.Sprintf("state['%.100s'] %s %.200s does not hold", p.Key, p.Operator, want.Canonical())
}

// compare orders two numbers, as doubles.
func (p *Precondition) compare(have, want policy.Value) (yes bool, problem string) {
	a, aErr := canonjson.Parse(have.Canonical())
	b, bErr := canonjson.Parse(want.Canonical())
	if aErr != nil || bErr != nil || a.Kind != canonjson.Number || b.Kind != canonjson.Number {
		return false, fmt.Sprintf("state['%.100s']: cannot compare %s with %s: %s needs two numbers", p.Key, a.Kind, b.Kind, p.Operator)
	}
	switch p.Operator {
	case "gt":
		return a.Num > b.Num, ""
	case "lt":
		return a.Num < b.Num, ""
	case "gte":
		return a.Num >= b.Num, ""
	}
	return a.Num <= b.Num, ""
}

func contains(have, want policy.Value) bool {
	tree, err := canonjson.Parse(have.Canonical())
	if err != nil {
		return false
	}
	text, err := canonjson.Parse(want.Canonical())
	isText := err == nil && text.Kind == canonjson.String
	switch tree.Kind {
	case canonjson.String:
		return isText && strings.Contains(tree.Str, text.Str)
	case canonjson.Object:
		_, ok := tree.Get(text.Text())
		return isText && ok
	case canonjson.Array:
		var room []byte
		for i := range tree.Elems {
			if room = tree.Elems[i].Append(room[:0]); bytes.Equal(room, want.Canonical()) {
				return true
			}
		}
	}
	return false
}
