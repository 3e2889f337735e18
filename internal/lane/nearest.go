package lane

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/fidelity"
)

const (
	// MaxCandidates is how many recorded messages at most are compared with one that was refused.
	MaxCandidates = 16
	// maxNamed is how many differences an explanation names.
	maxNamed = 3
	// maxRefused bounds what is kept of refusals: a program that asks again and again says nothing new.
	maxRefused = 10000
)

// Nearest is the candidate that differs least from what was asked, and in what; of equally near ones the first. diff says what differs, and false of one that cannot be
// compared. Tried are MaxCandidates. False is for none.
func Nearest[T any](candidates []T, diff func(T) ([]fidelity.Change, bool)) (nearest T, least []fidelity.Change, ok bool) {
	for _, c := range candidates[:min(len(candidates), MaxCandidates)] {
		changes, comparable := diff(c)
		if comparable && (!ok || len(changes) < len(least)) {
			nearest, least, ok = c, changes, true
		}
	}
	return nearest, least, ok
}

// Differences says in one line what differs; none where nothing does.
func Differences(changes []fidelity.Change, none string) string {
	if len(changes) == 0 {
		return none
	}
	var named []string
	for _, c := range changes[:min(len(changes), maxNamed)] {
		named = append(named, oneLine(&c))
	}
	text := "differs in " + strings.Join(named, "; ")
	if left := len(changes) - maxNamed; left > 0 {
		text += fmt.Sprintf("; and %d more", left)
	}
	return text
}

// oneLine describes one change.
func oneLine(c *fidelity.Change) string {
	switch c.Op {
	case fidelity.Added:
		return fmt.Sprintf("%s: %s", c.Heading(), c.Now)
	case fidelity.Removed:
		return fmt.Sprintf("%s: %s", c.Heading(), c.Was)
	case fidelity.Changed:
		return fmt.Sprintf("%s: %s -> %s", c.Heading(), c.Was, c.Now)
	}
	return c.Heading()
}

// Times says how often, for people.
func Times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Refused keeps what was refused, in the order in which it came, up to a bound. Its zero value works; it may be used by several
// goroutines at once.
type Refused[T any] struct {
	mu  sync.Mutex
	all []T
}

// Add keeps one.
func (r *Refused[T]) Add(t T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < maxRefused {
		r.all = append(r.all, t)
	}
}

// All lists what was kept.
func (r *Refused[T]) All() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]T(nil), r.all...)
}
