package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// wire are the three rules of the wire, none of which denies benched: all of each is looked at.
var wire = []Rule{
	{Name: "no_browser", Rule: DenyTool, Target: "browser"},
	{Name: "no_rm", Rule: DenyToolParam, Target: "shell", Key: "command", Pattern: "rm -rf"},
	{Name: "ready", Rule: RequireState, Key: "ready", Value: []byte("true")},
}

const benched = `{"command":"go test ./... -run TestEverything -count=1","timeout_ms":180000,"cwd":"/home/someone/project"}`

// byHand is what the three rules say, written for this action alone: the least that any engine could take.
func byHand(tool, command string, state map[string]string) bool {
	return tool != "browser" && (tool != "shell" || !strings.Contains(command, "rm -rf")) && state["ready"] == "true"
}

// benchState is a state without a lock.
type benchState map[string]Value

func (s benchState) Lookup(key string) (Value, bool) {
	v, ok := s[key]
	return v, ok
}

func (s benchState) Keys() []string { return nil }

// BenchmarkCheck takes the time of one check of the three rules of the wire, of the same by hand (of-hand is their ratio), and of
// the same as one expression, by our rule and by the library alone. read is the time to read the parameters, which is done once
// for all rules; digest that of the digest of new parameters, with their canonical JSON.
func BenchmarkCheck(b *testing.B) {
	const round = 1000
	yes, err := NewValue([]byte("true"))
	if err != nil {
		b.Fatal(err)
	}
	state := benchState{"ready": yes}
	set := mustCompile(b, wire...)
	one := mustCompile(b, Rule{Name: "p", Rule: Expr,
		Pattern: `tool == "browser" || tool == "shell" && parameters.command contains "rm -rf" || state.ready != true`})
	program, err := expr.Compile(`tool == "browser" || tool == "shell" && parameters.command contains "rm -rf" || state.ready != true`,
		expr.Env(environmentTypes), expr.AsBool())
	if err != nil {
		b.Fatal(err)
	}
	a := &Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: parameters(b, benched)}
	env := map[string]any{"tool": "shell", "parameters": a.Parameters.Map(), "state": map[string]any{"ready": true}}
	plainState := map[string]string{"ready": "true"}
	raw, command := []byte(benched), a.Parameters.Map()["command"].(string)
	params := make([]*Parameters, round)

	measured := []struct {
		name string
		run  func(i int) bool
	}{
		{"check-ns", func(int) bool { v := set.Check(a, state, "me"); return v.Allowed }},
		{"hand-ns", func(int) bool { return byHand(a.Tool, command, plainState) }},
		{"our-expr-ns", func(int) bool { v := one.Check(a, state, "me"); return v.Allowed }},
		{"expr-alone-ns", func(int) bool { got, err := vm.Run(program, env); return err == nil && got == false }},
		{"read-ns", func(i int) bool {
			var err error
			params[i], err = ParseParameters(raw)
			return err == nil
		}},
		{"digest-ns", func(i int) bool { return !params[i].Digest().IsZero() }},
		{"with-digests-ns", func(int) bool {
			p, err := ParseParameters(raw)
			fresh := Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: p}
			v := set.Check(&fresh, state, "me")
			return err == nil && v.Allowed && !v.ParamsDigest().IsZero() && !v.PolicySet().IsZero()
		}},
	}
	spent := make([]float64, len(measured))
	for b.Loop() {
		for m := range measured {
			begun := cputime.Spent()
			for i := range round {
				if !measured[m].run(i) {
					b.Fatal(measured[m].name, "denies")
				}
			}
			spent[m] += float64(cputime.Spent() - begun)
		}
	}
	for m := range measured {
		b.ReportMetric(spent[m]/float64(b.N)/round, measured[m].name)
	}
	b.ReportMetric(spent[0]/spent[1], "of-hand")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCheckAllocs counts what a check that allows allocates.
func BenchmarkCheckAllocs(b *testing.B) {
	yes, _ := NewValue([]byte("true"))
	state, set := benchState{"ready": yes}, mustCompile(b, wire...)
	a := &Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: parameters(b, benched)}
	b.ReportAllocs()
	for b.Loop() {
		if v := set.Check(a, state, "me"); !v.Allowed {
			b.Fatal("denied")
		}
	}
}

// A check stays under the microsecond that it is promised to take, with room for a slow machine.
func TestACheckIsFast(t *testing.T) {
	yes, _ := NewValue([]byte("true"))
	state, set := benchState{"ready": yes}, mustCompile(t, wire...)
	a := &Action{ID: "a", Type: "tool_call", Tool: "shell", Parameters: parameters(t, benched)}
	allowed := true
	check := func() {
		v := set.Check(a, state, "me")
		allowed = allowed && v.Allowed
	}
	if n := testing.AllocsPerRun(1000, check); n > 1 {
		t.Errorf("%v allocations", n)
	}
	const rounds = 100_000
	begun := cputime.Spent()
	for range rounds {
		check()
	}
	if per := (cputime.Spent() - begun) / rounds; !allowed || per > time.Microsecond && !raceEnabled {
		t.Errorf("a check of three rules takes %v, and allows: %v", per, allowed)
	}
}
