package proposal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// ids are those of actions in the order in which they run, or of those in a cycle.
func ids(t *testing.T, text string) ([]string, bool) {
	t.Helper()
	p := mustParse(t, text)
	list, err := newGraph(p.Actions).order()
	var cycle *CycleError
	if errors.As(err, &cycle) {
		return cycle.IDs, true
	}
	var out []string
	for _, i := range list {
		out = append(out, p.Actions[i].ID)
	}
	return out, false
}

func action(id, deps string, effects ...string) string {
	text := fmt.Sprintf(`{"id":%q,"type":"tool_call","tool":"t"`, id)
	if deps != "" {
		text += `,"state_dependencies":["` + strings.ReplaceAll(deps, ",", `","`) + `"]`
	}
	if len(effects) > 0 {
		text += `,"expected_effects":{"` + strings.Join(effects, `":1,"`) + `":1}`
	}
	return text + "}"
}

func write(id, key string) string {
	return fmt.Sprintf(`{"id":%q,"type":"state_write","parameters":{"key":%q}}`, id, key)
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name    string
		actions []string
		want    string
		cycle   bool
	}{
		{"none", nil, "", false},
		{"as they stand", []string{action("a", ""), action("b", ""), action("c", "")}, "a b c", false},
		{"in order already", []string{action("a", "", "x"), action("b", "x", "y"), action("c", "y")}, "a b c", false},
		{"behind its effect", []string{action("a", "x"), action("b", ""), action("c", "", "x")}, "b c a", false},
		{"behind its write", []string{action("a", "x"), write("b", "x")}, "b a", false},
		{"the last writer before it", []string{write("a", "x"), write("b", "x"), action("c", "x"), write("d", "x")}, "a b c d", false},
		{"the first writer behind it", []string{action("c", "x"), write("a", "x"), write("b", "x")}, "a c b", false},
		{"nobody writes it", []string{action("a", "x"), action("b", "y")}, "a b", false},
		{"its own effect", []string{action("a", "x", "x"), action("b", "")}, "a b", false},
		{"by id", []string{action("a", "c"), action("b", ""), action("c", "")}, "b c a", false},
		{"a key before an id", []string{action("a", "x"), action("x", ""), write("w", "x")}, "x w a", false},
		{"a diamond", []string{action("d", "b1,c1"), action("c", "a1", "c1"), action("b", "a1", "b1"), action("a", "", "a1")}, "a c b d", false},
		{"two ids the same", []string{action("a", ""), action("a", ""), action("b", "a")}, "a a b", false},
		{"a cycle", []string{action("z", ""), action("a", "x", "y"), action("b", "y", "x"), action("c", "x")}, "a b", true},
		{"a cycle by ids", []string{action("a", "b"), action("b", "c"), action("c", "a")}, "a b c", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, cycle := ids(t, `{"actions":[`+strings.Join(tt.actions, ",")+`]}`)
			if cycle != tt.cycle {
				t.Fatalf("cycle %v: %v", cycle, got)
			}
			if cycle {
				if len(got) != len(strings.Fields(tt.want)) {
					t.Errorf("the cycle is %v, want %s", got, tt.want)
				}
				return
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

func TestACycleRunsNothing(t *testing.T) {
	called := 0
	e := &Executor{Tools: counted(t, &called, 0)}
	_, err := e.Run(t.Context(), mustParse(t, `{"actions":[`+action("first", "")+","+action("a", "b")+","+action("b", "a")+`]}`))
	var cycle *CycleError
	if !errors.As(err, &cycle) || called != 0 {
		t.Errorf("%v, called %d times", err, called)
	}
	if diff := cmp.Diff([]string{"b", "a"}, cycle.IDs); diff != "" {
		t.Error(diff)
	}
}

func TestAnActionDependsOnOneThatSucceeded(t *testing.T) {
	called := 0
	e := &Executor{Tools: counted(t, &called, 0)}
	want(t, runs(t, e, `{"actions":[`+action("a", "b")+","+action("b", "")+`]}`), "a succeeded = 2", "b succeeded = 1")
	r := runs(t, e, `{"actions":[`+action("a", "b")+`,{"id":"b","type":"assertion","failure_behavior":"skip"}]}`)
	if r.Results[0].Status != Rejected || *r.Results[0].Error != "state dependency 'b' not found" {
		t.Errorf("%v", summary(r))
	}
}

// An order has every action once, each behind what it waits for, and the least number that could stand there.
func TestOrderIsTopological(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(rt, "actions")
		actions := make([]Action, n)
		key := rapid.SampledFrom([]string{"k0", "k1", "k2", "k3", "k4", "k5"})
		for i := range actions {
			actions[i] = Action{ID: fmt.Sprint("a", i), Type: ToolCall, StateDependencies: rapid.SliceOfN(key, 0, 2).Draw(rt, "deps")}
			for _, k := range rapid.SliceOfN(key, 0, 1).Draw(rt, "effects") {
				actions[i].ExpectedEffects = map[string]json.RawMessage{k: nil}
			}
		}
		g := newGraph(actions)
		got, err := g.order()
		if err != nil {
			var cycle *CycleError
			if !errors.As(err, &cycle) || len(cycle.IDs) < 2 {
				rt.Fatalf("%v", err)
			}
			return
		}
		done := make([]bool, n)
		for _, i := range got {
			for least := range n {
				if !done[least] && g.ready(least, done) {
					if least != i {
						rt.Fatalf("%d runs before %d, which could", i, least)
					}
					break
				}
			}
			done[i] = true
		}
		if len(got) != n {
			rt.Fatalf("%d of %d actions", len(got), n)
		}
	})
}

func TestTheLargestProposalIsOrderedSoon(t *testing.T) {
	actions := make([]Action, MaxActions)
	for i := range actions {
		actions[i] = Action{ID: fmt.Sprint(i), Type: ToolCall}
		for d := range MaxDependencies {
			actions[i].StateDependencies = append(actions[i].StateDependencies, fmt.Sprint((i+1+d)%(MaxActions+1)))
		}
	}
	began := cputime.Spent()
	_, err := newGraph(actions).order()
	t.Log(cputime.Spent() - began) // of a search for each path it would be years
	if err == nil {
		t.Error("a circle has an order")
	}
}
