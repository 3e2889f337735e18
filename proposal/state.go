package proposal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

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
