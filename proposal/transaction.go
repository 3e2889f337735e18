package proposal

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/policy"
)

// A transaction is what one proposal writes to the state.
type transaction struct {
	*Scope
	wrote []string                 // keys, each once
	since map[string]*policy.Value // what the keys that were written since the mark had from this proposal then; nil is nothing
}

func (c *Scope) begin() *transaction { return &transaction{Scope: c} }

func (t *transaction) write(key string, v policy.Value) error {
	before := t.own(key)
	if err := t.set(key, v, t); err != nil {
		return err
	}
	if _, known := t.since[key]; !known {
		t.since[key] = before
	}
	if !slices.Contains(t.wrote, key) {
		t.wrote = append(t.wrote, key)
	}
	return nil
}

// own is what the proposal has written to key last; nil is nothing.
func (t *transaction) own(key string) *policy.Value {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	versions := t.state.tenants[t.tenant][key]
	if i := lastOf(versions, t); i >= 0 {
		return &versions[i].value
	}
	return nil
}

// mark begins an attempt, and back takes back what was written since.
func (t *transaction) mark() { t.since = make(map[string]*policy.Value) }

func (t *transaction) back() {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	for key, before := range t.since {
		versions := slices.Clone(t.state.tenants[t.tenant][key])
		last := lastOf(versions, t)
		switch {
		case last < 0: // somebody has written it for good
		case before == nil:
			_ = t.put(key, slices.Delete(versions, last, last+1))
		default:
			versions[last].value = *before
			_ = t.put(key, versions)
		}
	}
}

// lastOf is the last version of t; -1 is none.
func lastOf(versions []version, t *transaction) int {
	for i, v := range slices.Backward(versions) {
		if v.by == t {
			return i
		}
	}
	return -1
}

// commit makes what the proposal wrote stay, all in one moment. What lies on it, of proposals that still run, stays there.
func (t *transaction) commit() {
	t.end(func(versions []version) []version {
		last := lastOf(versions, t)
		if last < 0 {
			return versions // somebody has written it for good since
		}
		kept := slices.Clone(versions[last:])
		kept[0].by = nil
		return kept
	})
}

// rollback takes away what the proposal wrote, all in one moment.
func (t *transaction) rollback() {
	t.end(func(versions []version) []version {
		return slices.DeleteFunc(slices.Clone(versions), func(v version) bool { return v.by == t })
	})
}

func (t *transaction) end(change func([]version) []version) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	for _, key := range t.wrote {
		if versions := t.state.tenants[t.tenant][key]; versions != nil {
			_ = t.put(key, change(versions)) // fewer versions are within every limit
		}
	}
	t.wrote = nil
}
