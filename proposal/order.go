package proposal

import (
	"fmt"
	"slices"
	"strings"
)

// A CycleError says that actions wait for each other.
type CycleError struct{ IDs []string } // of the actions of one cycle, each after the one that it waits for

func (e *CycleError) Error() string {
	ids := e.IDs
	if len(ids) > 10 {
		ids = append(append([]string{}, ids[:10]...), "…")
	}
	return fmt.Sprintf("proposal: actions wait for each other in a circle over state_dependencies: %.1000s", strings.Join(ids, ", "))
}

// A graph is the actions of a proposal and which of them come before others.
type graph struct {
	actions []Action
	before  [][]int // of each action, those that it waits for
}

// newGraph finds what each action waits for. A dependency is a key of the state, which the action waits for that writes it: a
// state_write of it, or one that has it among its expected effects; the last that stands before it, else the first behind.
// One that nobody in the proposal writes is the id of an action, or waits for nothing. Actions that write one key stay in
// their order.
func newGraph(actions []Action) *graph {
	g := &graph{actions, make([][]int, len(actions))}
	writers := make(map[string][]int)
	ids := make(map[string]int)
	for i := range actions {
		for _, key := range writes(&actions[i]) {
			if w := writers[key]; len(w) > 0 {
				g.wait(i, w[len(w)-1])
			}
			writers[key] = append(writers[key], i)
		}
		if _, twice := ids[actions[i].ID]; !twice {
			ids[actions[i].ID] = i
		}
	}
	for i := range actions {
		for _, dep := range actions[i].StateDependencies {
			if w := producer(writers[dep], i); w >= 0 {
				g.wait(i, w)
			} else if id, ok := ids[dep]; ok {
				g.wait(i, id)
			}
		}
	}
	return g
}

func (g *graph) wait(i, for_ int) {
	if i != for_ {
		g.before[i] = append(g.before[i], for_)
	}
}

// producer is the last of writers, which are sorted, before action i, else the first behind it, else -1.
func producer(writers []int, i int) int {
	found := -1
	for _, w := range writers {
		if w < i || found < 0 && w > i {
			found = w
		}
	}
	return found
}

// writes are the keys that an action writes when it succeeds.
func writes(a *Action) []string {
	var keys []string
	if a.Type == StateWrite {
		if key, _, err := keyAndValue(a.Parameters); err == nil {
			keys = append(keys, key)
		}
	}
	for key := range a.ExpectedEffects {
		if len(keys) == 0 || key != keys[0] {
			keys = append(keys, key)
		}
	}
	return keys
}

// order returns the indices of the actions, each behind those that it waits for and else where it stands. The error is a
// *CycleError.
func (g *graph) order() ([]int, error) {
	out := make([]int, 0, len(g.actions))
	done := make([]bool, len(g.actions))
	for len(out) < len(g.actions) {
		next := -1
		for i := range g.actions {
			if !done[i] && g.ready(i, done) {
				next = i
				break
			}
		}
		if next < 0 {
			return nil, g.cycle(done)
		}
		done[next] = true
		out = append(out, next)
	}
	return out, nil
}

// hold has actions wait besides for those before them in order whose end they would notice: what writes a key and what names it
// keep their order; a state_read and an assertion come behind all before them, for nobody knows what tools write to the state
// themselves; and what stands behind an assertion comes behind it. All that waits, waits for what order has before it: no circle.
func (g *graph) hold(order []int) {
	assertion := -1
	writer, readers := make(map[string]int), make(map[string][]int) // of each key: the last that writes it, who has read it since
	for at, i := range order {
		a := &g.actions[i]
		switch {
		case a.Type == StateRead || a.Type == Assertion:
			g.before[i] = append(g.before[i], order[:at]...)
		case assertion >= 0:
			g.wait(i, assertion)
		}
		if a.Type == Assertion {
			assertion = i
		}
		for _, key := range reads(a) {
			if w, ok := writer[key]; ok {
				g.wait(i, w)
			}
			readers[key] = append(readers[key], i)
		}
		for _, key := range writes(a) {
			g.before[i] = append(g.before[i], slices.DeleteFunc(readers[key], func(r int) bool { return r == i })...)
			delete(readers, key)
			writer[key] = i
		}
	}
}

// reads are the keys whose values an action names: those of an assertion's parameters are left out, which holds up all others.
func reads(a *Action) []string {
	keys := slices.Clone(a.StateDependencies)
	for i := range a.Preconditions {
		keys = append(keys, a.Preconditions[i].Key)
	}
	if a.Type == StateRead {
		if key, _, err := keyAndValue(a.Parameters); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

func (g *graph) ready(i int, done []bool) bool {
	for _, w := range g.before[i] {
		if !done[w] {
			return false
		}
	}
	return true
}

// cycle follows what is not done from one to one that it waits for, until one comes again.
func (g *graph) cycle(done []bool) *CycleError {
	at := 0
	for done[at] {
		at++
	}
	seen := make(map[int]int)
	var path []int
	for {
		if from, again := seen[at]; again {
			path = path[from:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		for _, w := range g.before[at] {
			if !done[w] {
				at = w
				break
			}
		}
	}
	e := &CycleError{}
	for i := len(path) - 1; i >= 0; i-- {
		e.IDs = append(e.IDs, g.actions[path[i]].ID)
	}
	return e
}
