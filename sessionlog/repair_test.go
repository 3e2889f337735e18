package sessionlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// examined goes through the events of a list, which stand on a line each.
func examined(t interface{ Fatalf(string, ...any) }, events [][]byte) *Findings {
	x := newExaminer()
	for i, e := range events {
		if err := x.add(e, i+1); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
		x.index++
	}
	x.end()
	return x.found()
}

func repaired(f *Findings, events [][]byte) [][]byte {
	var out [][]byte
	put := func(e []byte) error { out = append(out, e); return nil }
	c := f.copying()
	for i, e := range events {
		c.before(i, put)
		if e = c.event(i, e); e != nil {
			put(e)
		}
	}
	c.before(len(events), put)
	return out
}

func events(lines string) (out [][]byte) {
	for l := range strings.Lines(lines) {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, []byte(l))
		}
	}
	return out
}

// TestRepair takes one log of each damage: what is said of it, and what its copy is.
func TestRepair(t *testing.T) {
	for _, tt := range []struct{ name, log, found, copy string }{
		{"whole", `
			{"kind":"run_started","run_id":"r"}
			{"kind":"llm_completed","turn":1,"message":{"role":"assistant","content":"","tool_calls":[{"id":"a","name":"ls","arguments":{}}]}}
			{"kind":"tool_requested","turn":1,"calls":[{"id":"a","name":"ls","arguments":{}}]}
			{"kind":"tool_completed","turn":1,"results":[{"call_id":"a","output":"x","is_error":false}]}
			{"kind":"llm_completed","turn":2,"message":{"role":"assistant","content":"done"}}
			{"kind":"run_terminal","reason":"completed","turns_used":2,"total_tokens":3}`, ``, `0 1 2 3 4 5`},
		{"a call without a result in the middle", `
			{"kind":"llm_completed","turn":1,"tool_calls":[{"id":"a"},{"id":"b"}]}
			{"kind":"tool_requested","turn":1,"calls":[{"id":"a"},{"id":"b"}]}
			{"kind":"tool_completed","turn":1,"results":[{"call_id":"b"}]}
			{"kind":"llm_completed","turn":2,"content":"done"}
			{"kind":"run_terminal"}`,
			`call_without_result turn 1 a line 1`,
			`0 1 2 {"kind":"tool_completed","turn":1,"results":[{"call_id":"a","output":"` + noResult + `","is_error":true}],"repaired":"call_without_result"} 3 4`},
		{"cut before the call was asked for", `
			{"kind":"run_started","run_id":"r"}
			{"kind":"llm_completed","turn":1e0,"message":{"tool_calls":[{"id":"a","name":"ls","arguments":{"n":12345678901234567890}}]}}`,
			`run_without_end turn 0  line 1, turn_cut turn 1e0  line 2, call_without_result turn 1e0 a line 2`,
			`0 1 {"kind":"tool_requested","turn":1e0,"calls":[{"id":"a","name":"ls","arguments":{"n":12345678901234567890}}],"repaired":"call_without_result"}` +
				` {"kind":"tool_completed","turn":1e0,"results":[{"call_id":"a","output":"` + noResult + `","is_error":true}],"repaired":"call_without_result"}` +
				` {"kind":"run_terminal","reason":"interrupted","turns_used":1,"repaired":"run_without_end"}`},
		{"a prompt without an answer, then another run", `
			{"kind":"run_started","run_id":"r"}
			{"kind":"run_started","run_id":"s"}
			{"kind":"llm_completed","turn":1,"message":{}}
			{"kind":"run_terminal"}`,
			`turn_cut turn 0  line 1, run_without_end turn 0  line 1`,
			`0 {"kind":"run_terminal","reason":"interrupted","turns_used":0,"repaired":"run_without_end"} 1 2 3`},
		{"results twice and without a call", `
			{"kind":"tool_requested","turn":1,"calls":[{"id":"a"}]}
			{"kind":"tool_completed","turn":1,"results":[ {"call_id":"a","output":"x"} , {"call_id":"o\u0062"} ], "new":1 }
			{"kind":"tool_completed","turn":1,"results":[{"call_id":"a","output":"y"},{"call_id":"ob"},{"call_id":"a"}]}
			{"kind":"tool_completed","turn":2,"results":[{"call_id":"a"},{"call_id":"c"}],"g":1.0}`,
			`result_without_call turn 1 ob line 2, result_twice turn 1 a line 3, result_twice turn 1 ob line 3, ` +
				`result_twice turn 1 a line 3, result_twice turn 2 a line 4, result_without_call turn 2 c line 4`,
			`0 {"kind":"tool_requested","turn":1,"calls":[{"id":"ob","name":"","arguments":{}}],"repaired":"result_without_call"} 1 ` +
				`{"kind":"tool_requested","turn":2,"calls":[{"id":"c","name":"","arguments":{}}],"repaired":"result_without_call"} ` +
				`{"kind":"tool_completed","turn":2,"results":[{"call_id":"c"}],"g":1.0}`},
		{"denied, cancelled and suspended calls need no result", `
			{"kind":"run_started"}
			{"kind":"tool_requested","turn":1,"calls":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]}
			{"kind":"tool_denied","turn":1,"call_id":"a"}
			{"kind":"operation_cancelled","turn":1,"pending_call_ids":["b"]}
			{"kind":"suspended","turn":1,"pending_calls":["c","d"]}`, ``, `0 1 2 3 4`},
		{"resumed, one denied, one open", `
			{"kind":"run_started"}
			{"kind":"tool_requested","turn":1,"calls":[{"id":"c"},{"id":"d"}]}
			{"kind":"suspended","turn":1,"pending_calls":["c","d"]}
			{"kind":"resumed","turn":2,"approved":["c"],"denied":["d"]}
			{"kind":"run_terminal"}`, `call_without_result turn 1 c line 2`,
			`0 1 2 3 {"kind":"tool_completed","turn":1,"results":[{"call_id":"c","output":"` + noResult + `","is_error":true}],"repaired":"call_without_result"} 4`},
		{"an id of another turn, calls without an id", `
			{"kind":"tool_requested","turn":1,"calls":[{"id":"call_0"},{"name":"x"}]}
			{"kind":"tool_completed","turn":1,"results":[{"call_id":"call_0"},{"output":"y"}]}
			{"kind":"tool_requested","turn":2,"calls":[{"id":"call_0"}]}
			{"kind":"tool_completed","turn":2,"results":[{"call_id":"call_0"}]}`, ``, `0 1 2 3`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := events(tt.log)
			f := examined(t, log)
			var said []string
			for _, x := range f.List {
				said = append(said, fmt.Sprintf("%s turn %s %s line %d", x.Code, x.Turn, x.CallID, x.Line))
			}
			if got := strings.Join(said, ", "); got != tt.found {
				t.Errorf("found %s\nwant  %s", got, tt.found)
			}
			var names []string
			for _, e := range repaired(f, log) {
				name := string(e)
				if i := slices.IndexFunc(log, func(l []byte) bool { return &l[0] == &e[0] }); i >= 0 {
					name = fmt.Sprint(i)
				}
				names = append(names, name)
			}
			if got := strings.Join(names, " "); got != tt.copy {
				t.Errorf("copy %s\nwant %s", got, tt.copy)
			}
		})
	}
}

// genConversation draws events as a crashing, confused producer may leave them.
func genConversation(t *rapid.T) []byte {
	id := func() string { return rapid.SampledFrom([]string{"a", "b", "c", "d", ""}).Draw(t, "id") }
	turn := rapid.SampledFrom([]string{"1", "2", "3", "1.0", "null"}).Draw(t, "turn")
	ids := func(format string) string {
		var all []string
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			all = append(all, fmt.Sprintf(format, id()))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	switch kind := rapid.SampledFrom([]string{"run_started", "llm_completed", "llm_completed", "tool_requested", "tool_requested",
		"tool_completed", "tool_completed", "tool_denied", "suspended", "resumed", "operation_cancelled", "run_terminal", "of_tomorrow",
	}).Draw(t, "kind"); kind {
	case "llm_completed":
		if rapid.Bool().Draw(t, "newer") {
			return fmt.Appendf(nil, `{"kind":%q,"turn":%s,"content":"","tool_calls":%s}`, kind, turn, ids(`{"id":%q}`))
		}
		return fmt.Appendf(nil, `{"turn":%s,"message":{"role":"assistant","tool_calls":%s},"kind":%q}`, turn, ids(`{"name":"x","id":%q}`), kind)
	case "tool_requested":
		return fmt.Appendf(nil, `{"kind":%q,"turn":%s,"calls":%s}`, kind, turn, ids(`{"id":%q,"arguments":{"id":1}}`))
	case "tool_completed":
		return fmt.Appendf(nil, `{"kind":%q,"results":%s,"turn":%s}`, kind, ids(`{ "call_id":%q, "output":"]" }`), turn)
	default:
		return fmt.Appendf(nil, `{"kind":%q,"turn":%s,"call_id":%q,"pending_calls":%s,"pending_call_ids":%s,"denied":%s}`,
			kind, turn, id(), ids("%q"), ids("%q"), ids("%q"))
	}
}

// TestRepairedIsWhole: nothing is found in a repaired copy, a log without findings is its own copy, and events that were whole
// stand in the copy byte for byte, in their order.
func TestRepairedIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfN(rapid.Custom(genConversation), 0, 40).Draw(t, "log")
		f := examined(t, log)
		copy := repaired(f, log)
		if again := examined(t, copy); len(again.List) > 0 {
			t.Fatalf("%+v is found in the copy\n%s\nof\n%s", again.List, lines(copy), lines(log))
		}
		if len(f.List) == 0 && lines(copy) != lines(log) {
			t.Fatalf("nothing was found, and the copy is\n%s\nof\n%s", lines(copy), lines(log))
		}
		at := 0
		for i, e := range log {
			if f.drops[i] != nil {
				continue
			}
			n := slices.IndexFunc(copy[at:], func(c []byte) bool { return &c[0] == &e[0] })
			if n < 0 {
				t.Fatalf("%s is not in its place in\n%s", e, lines(copy))
			}
			at += n + 1
		}
	})
}

func lines(events [][]byte) string {
	var b strings.Builder
	for _, e := range events {
		b.Write(e)
		b.WriteByte('\n')
	}
	return b.String()
}

// TestRepairRefuses: what cannot be read for what it is, is an error, and never a guess.
func TestRepairRefuses(t *testing.T) {
	for event, want := range map[string]string{
		`{"kind":"tool_requested","calls":{}}`:                                "field calls: want a list of objects",
		`{"kind":"tool_requested","calls":["a"]}`:                             "field calls: want a list of objects",
		`{"kind":"tool_requested","calls":[{"id":1}]}`:                        `want objects that have one string "id"`,
		`{"kind":"tool_completed","results":[{"call_id":"a","call_id":"b"}]}`: `one string "call_id"`,
		`{"kind":"llm_completed","message":{"tool_calls":3}}`:                 "want a list of objects",
		`{"kind":"llm_completed","message":3}`:                                "want an object",
		`{"kind":"llm_completed","turn":"x"}`:                                 "field turn: want a number",
	} {
		if err := newExaminer().add([]byte(event), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", event, err, want)
		}
	}
}
