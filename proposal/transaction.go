package proposal

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/policy"
)

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
