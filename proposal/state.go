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
type State struct {
	mu      sync.Mutex
	tenants map[string]map[string]entry
	keys    int
	bytes   int
	writes  uint64
}

// An entry is a value and the write that put it there.
type entry struct {
	value policy.Value
	write uint64
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
	e, ok := c.state.tenants[c.tenant][key]
	return e.value, ok
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
	return slices.AppendSeq(make([]string, 0, len(c.state.tenants[c.tenant])), sortedKeys(c.state.tenants[c.tenant]))
}

func sortedKeys(m map[string]entry) func(func(string) bool) {
	return slices.Values(slices.Sorted(maps.Keys(m)))
}

// Snapshot returns all values, of one moment; not nil.
func (c *Scope) Snapshot() map[string]json.RawMessage {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	out := make(map[string]json.RawMessage, len(c.state.tenants[c.tenant]))
	for k, e := range c.state.tenants[c.tenant] {
		out[k] = e.value.Raw()
	}
	return out
}

// Set gives key the value in raw; no bytes are null. The error says that raw has no single meaning, or is a *LimitError.
func (c *Scope) Set(key string, raw []byte) error {
	if len(raw) > MaxStateValue {
		return &LimitError{fmt.Sprintf("a value of %d bytes, more than %d", len(raw), MaxStateValue)}
	}
	v, err := policy.NewValue(raw)
	if err != nil {
		return fmt.Errorf("value of %.100q: %w", key, err)
	}
	_, err = c.set(key, v)
	return err
}

// An undo takes one write back.
type undo struct {
	key   string
	had   bool
	value policy.Value // that it had
	write uint64       // that is taken back
}

func (c *Scope) set(key string, v policy.Value) (undo, error) {
	if len(key) > MaxStateKey || len(c.tenant) > MaxStateKey {
		return undo{}, &LimitError{fmt.Sprintf("a name of more than %d bytes", MaxStateKey)}
	}
	s := c.state
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.tenants[c.tenant][key]
	size := entrySize(key, v)
	if had {
		size -= entrySize(key, old.value)
	} else if s.keys >= MaxStateKeys {
		return undo{}, &LimitError{fmt.Sprintf("%d keys, and no more are kept", MaxStateKeys)}
	}
	if size > 0 && s.bytes+size > MaxStateBytes {
		return undo{}, &LimitError{fmt.Sprintf("%d bytes, and no more are kept", MaxStateBytes)}
	}
	return undo{key, had, old.value, c.put(key, v)}, nil
}

// entrySize is what a value takes of the limit; small ones count as more than their bytes.
func entrySize(key string, v policy.Value) int { return len(key) + v.Size() + 64 }

// put gives key a value and returns the number of the write. The lock is held.
func (c *Scope) put(key string, v policy.Value) uint64 {
	s := c.state
	if old, had := s.tenants[c.tenant][key]; had {
		s.bytes -= entrySize(key, old.value)
	} else {
		s.keys++
	}
	if s.tenants == nil {
		s.tenants = make(map[string]map[string]entry)
	}
	if s.tenants[c.tenant] == nil {
		s.tenants[c.tenant] = make(map[string]entry)
	}
	s.writes++
	s.bytes += entrySize(key, v)
	s.tenants[c.tenant][key] = entry{v, s.writes}
	return s.writes
}

// drop takes key away. The lock is held.
func (c *Scope) drop(key string) {
	s := c.state
	if old, had := s.tenants[c.tenant][key]; had {
		s.bytes -= entrySize(key, old.value)
		s.keys--
		delete(s.tenants[c.tenant], key)
		if len(s.tenants[c.tenant]) == 0 {
			delete(s.tenants, c.tenant)
		}
	}
}

// rollback takes writes back, all in one moment, the last first. A key that somebody else has written since keeps what it has.
func (c *Scope) rollback(undos []undo) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	ours := make(map[string]uint64, len(undos)) // the write of ours that a key must have now
	for _, u := range undos {
		ours[u.key] = u.write
	}
	for _, u := range slices.Backward(undos) {
		if c.state.tenants[c.tenant][u.key].write != ours[u.key] {
			continue
		}
		if u.had {
			ours[u.key] = c.put(u.key, u.value)
		} else {
			c.drop(u.key)
		}
	}
}
