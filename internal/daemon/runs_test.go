package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// record sends a batch of n turns.
func (p *peer) record(run string, n int) rpcapi.RunsRecordTurnsResult {
	p.t.Helper()
	var out rpcapi.RunsRecordTurnsResult
	p.must(rpcapi.RunsRecordTurns, json.RawMessage(`{"run_id":"`+run+`","turns":[`+strings.Repeat(`{"index":-7,"tool":"t"},`, n-1)+`{"index":"x"}]}`), &out)
	return out
}

func TestIndicesAreTheDaemons(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	other := r.as("a") // another connection of the same agent
	var all sync.WaitGroup
	seen := make([]bool, 50)
	var mu sync.Mutex
	for i := range 10 {
		all.Go(func() {
			who := p
			if i%2 == 1 {
				who = other
			}
			out := who.record(run, 5)
			mu.Lock()
			defer mu.Unlock()
			for k := out.BaseIndex; k < out.BaseIndex+out.Count; k++ {
				if seen[k] || !out.OK || out.Dropped != "" {
					t.Errorf("index %d twice: %+v", k, out)
				}
				seen[k] = true
			}
		})
	}
	all.Wait()
	got := turns(t, p.trace(run))
	if len(got) != 50 {
		t.Fatalf("%d turns", len(got))
	}
	for i, turn := range got {
		if !strings.HasPrefix(turn, fmt.Sprintf(`{"record":"turn","index":%d,`, i)) {
			t.Errorf("turn %d: %s", i, turn)
		}
	}
}

func TestDroppedTurns(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	want := func(out rpcapi.RunsRecordTurnsResult, run, why string) {
		t.Helper()
		if (out != rpcapi.RunsRecordTurnsResult{RunID: run, Dropped: why}) {
			t.Errorf("want %s, got %+v", why, out)
		}
	}
	want(p.record("nothing", 1), "nothing", "run_not_found")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	want(r.as("b").record(run, 1), run, "run_not_found")
	want(r.host().record(run, 1), run, "run_not_found")
	for range 7 {
		if out := p.record(run, 256); !out.OK || out.Count != 256 {
			t.Fatalf("%+v", out)
		}
	}
	want(p.record(run, 209), run, "run_turn_limit")
	if out := p.record(run, 208); !out.OK || out.BaseIndex != 1792 {
		t.Fatalf("%+v", out)
	}
	want(p.record(run, 1), run, "run_turn_limit")
	p.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`","outcome":{"status":"done"}}`), nil)
	want(p.record(run, 1), run, "run_terminal")
	large := p.startRun(rpcapi.RunsStartParams{}).RunID
	list := `[` + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 300) + `1]`
	var out rpcapi.RunsRecordTurnsResult
	p.must(rpcapi.RunsRecordTurns, json.RawMessage(`{"run_id":"`+large+`","turns":[{},{"output":`+list+`}]}`), &out)
	want(out, large, "turn_too_large")
	if got := turns(t, p.trace(large)); len(got) != 0 {
		t.Errorf("a part of a batch was kept: %d", len(got))
	}
	for _, params := range []string{
		`{"turns":[{}]}`, `{"run_id":"` + large + `"}`, `{"run_id":"` + large + `","turns":[]}`, `{"run_id":"` + large + `","turns":{}}`,
		`{"run_id":"` + large + `","turns":[1]}`, `[]`, `{"run_id":5,"turns":[{}]}`, `{"run_id":"` + large + `","turns":[{"tool":5}]}`,
		`{"run_id":"` + large + `","turns":[` + strings.Repeat(`{},`, 256) + `{}]}`,
	} {
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsRecordTurns, json.RawMessage(params))
	}
}

func TestAKeyIsTheRun(t *testing.T) {
	r := start(t, nil)
	a, b := r.as("a"), r.as("b")
	key := rpcapi.RunsStartParams{IdempotencyKey: "job-1", Intent: "first"}
	if run := a.startRun(key); run.RunID != "job-1" || run.AgentID != "a" {
		t.Fatalf("%+v", run)
	}
	a.record("job-1", 2)
	again := r.as("a")
	if run := again.startRun(rpcapi.RunsStartParams{IdempotencyKey: "job-1", Intent: "second"}); run.RunID != "job-1" {
		t.Fatalf("%+v", run)
	}
	again.answers("t", `1`)
	again.call("t", `{}`) // it is the session's current run
	if got := turns(t, a.trace("job-1")); len(got) != 3 {
		t.Fatalf("turns: %s", got)
	}
	if n := len(a.trace("job-1").Records); n != 4 {
		t.Fatalf("%d records: a second started?", n)
	}
	taken := b.refused(rpcapi.CodeInvalidParams, rpcapi.RunsStart, key)
	if s := fmt.Sprint(taken); strings.Contains(s, "job-1") || strings.Contains(s, "first") {
		t.Errorf("it says too much: %s", s)
	}
	a.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"job-1","outcome":{"status":"failure"}}`), nil)
	if run := a.startRun(key); run.RunID != "job-1" {
		t.Fatalf("%+v", run)
	}
	if out := a.record("job-1", 1); out.Dropped != "run_terminal" {
		t.Fatalf("%+v", out)
	}
}

// TestOthersLearnNothing compares, byte for byte, what is said of a foreign run and of one that is not there.
func TestOthersLearnNothing(t *testing.T) {
	r := start(t, nil)
	owner := r.as("owner")
	const open, ended, none = "run-aaaa", "run-bbbb", "run-cccc"
	for _, run := range []string{open, ended} {
		owner.startRun(rpcapi.RunsStartParams{IdempotencyKey: run, Intent: "secret"})
		owner.record(run, 3)
	}
	owner.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+ended+`","outcome":{"status":"done"}}`), nil)
	strangers := map[string]*peer{"another agent": r.as("stranger"), "nobody": r.as("")}
	for who, p := range strangers {
		for _, method := range []string{rpcapi.RunsGetTrace, rpcapi.RunsSubscribe, rpcapi.RunsVerdicts, rpcapi.RunsUnsubscribe, "record", "complete", "check"} {
			said := map[string]string{}
			for _, run := range []string{open, ended, none} {
				name, params := method, `{"run_id":"`+run+`"}`
				switch method {
				case "record":
					name, params = rpcapi.RunsRecordTurns, `{"run_id":"`+run+`","turns":[{}]}`
				case "complete":
					name, params = rpcapi.RunsComplete, `{"run_id":"`+run+`","outcome":{"status":"done"}}`
				case "check":
					name, params = rpcapi.PolicyCheck, `{"run_id":"`+run+`","tool":"t"}`
				}
				out, err := p.try(name, json.RawMessage(params))
				said[run] = strings.ReplaceAll(fmt.Sprintf("%s %v", out, err), run, "RUN")
			}
			if said[open] != said[none] || said[ended] != said[none] {
				t.Errorf("%s, %s:\nopen  %s\nended %s\nnone  %s", who, method, said[open], said[ended], said[none])
			}
		}
		real := p.refused(rpcapi.CodeInternal, rpcapi.RunsList, rpcapi.RunsListParams{AgentID: "owner"})
		not := p.refused(rpcapi.CodeInternal, rpcapi.RunsList, rpcapi.RunsListParams{AgentID: "nobody-at-all"})
		if real.Message != not.Message {
			t.Errorf("%s: %q and %q", who, real.Message, not.Message)
		}
	}
	if got := turns(t, owner.trace(open)); len(got) != 3 {
		t.Errorf("turns of the owner: %d", len(got))
	}
}

func TestTheHostReadsAllAndWritesNothing(t *testing.T) {
	r := start(t, nil)
	a, b, h := r.as("a"), r.as("b"), r.host()
	one, two := a.startRun(rpcapi.RunsStartParams{Intent: "one"}), b.startRun(rpcapi.RunsStartParams{Intent: "two"})
	a.record(one.RunID, 2)
	var list rpcapi.RunsListResult
	h.must(rpcapi.RunsList, nil, &list)
	if len(list.Runs) != 2 || list.Runs[0].RunID != two.RunID || list.Runs[1].TurnCount != 2 || list.Runs[1].Status != "in_progress" || list.Runs[1].EndedAt != nil {
		t.Fatalf("%+v", list)
	}
	h.must(rpcapi.RunsList, rpcapi.RunsListParams{AgentID: "a"}, &list)
	if len(list.Runs) != 1 || list.AgentID != "a" || list.Runs[0].Intent != "one" || list.Runs[0].StartedAt.IsZero() {
		t.Fatalf("%+v", list)
	}
	h.must(rpcapi.RunsList, rpcapi.RunsListParams{AgentID: "none"}, &list)
	if list.Runs == nil || len(list.Runs) != 0 {
		t.Fatalf("%+v", list)
	}
	if got := turns(t, h.trace(one.RunID)); len(got) != 2 {
		t.Fatalf("%s", got)
	}
	h.must(rpcapi.RunsSubscribe, rpcapi.RunParams{RunID: one.RunID}, nil)
	h.refused(rpcapi.CodeInternal, rpcapi.RunsStart, rpcapi.RunsStartParams{AgentID: "a"})
	h.refused(rpcapi.CodeInternal, rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+one.RunID+`","outcome":{"status":"done"}}`))
}

func TestWhoeverStartedARunOwnsItsAgent(t *testing.T) {
	r := start(t, nil)
	p := r.as("")
	p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsStart, rpcapi.RunsStartParams{Intent: "as nobody"})
	p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsList, nil)
	run := p.startRun(rpcapi.RunsStartParams{AgentID: "x"})
	if out := p.record(run.RunID, 1); !out.OK {
		t.Fatalf("%+v", out)
	}
	var list rpcapi.RunsListResult
	p.must(rpcapi.RunsList, nil, &list)
	if list.AgentID != "x" || len(list.Runs) != 1 {
		t.Fatalf("%+v", list)
	}
}

func TestWithoutAuthAFreshConnectionReadsAll(t *testing.T) {
	r := start(t, &daemon.Options{NoAuth: true})
	a, b, reader := r.connect(), r.connect(), r.connect()
	run := a.startRun(rpcapi.RunsStartParams{AgentID: "a"}).RunID
	b.startRun(rpcapi.RunsStartParams{AgentID: "b"})
	if tr := reader.trace(run); tr.NotFound || tr.AgentID != "a" {
		t.Fatalf("%+v", tr)
	}
	if tr := b.trace(run); !tr.NotFound {
		t.Fatalf("%+v", tr)
	}
	if out := reader.record(run, 1); out.Dropped != "run_not_found" {
		t.Fatalf("%+v", out)
	}
}

// evil are ids that are no plain names.
func evil() []string {
	return []string{
		"../x", "..", ".", "/etc/passwd", "a/b", `a\b`, "%2e%2e%2fx", "a%00b", "a\x00b", "a\nb", " a", "a ", "-a", "_a", ":a", ".a",
		strings.Repeat("a", 129), strings.Repeat("a", 10000), "аgent", "ａgent", "a\u200bb", "a\u2215b", "é", "\U0001F600", "a*", "a?", "$HOME", "~",
	}
}

func TestIdsThatAreNoNamesAreRefused(t *testing.T) {
	r := start(t, nil)
	p := r.as("")
	for _, id := range evil() {
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsStart, rpcapi.RunsStartParams{AgentID: id})
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsStart, rpcapi.RunsStartParams{AgentID: "a", IdempotencyKey: id})
		for _, method := range []string{rpcapi.RunsGetTrace, rpcapi.RunsSubscribe, rpcapi.RunsVerdicts} {
			p.refused(rpcapi.CodeInvalidParams, method, rpcapi.RunParams{RunID: id})
		}
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsList, rpcapi.RunsListParams{AgentID: id})
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsRecordTurns, rpcapi.RunsRecordTurnsParams{RunID: id, Turns: make([]rpcapi.Turn, 1)})
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsComplete, rpcapi.RunsCompleteParams{RunID: id, Outcome: rpcapi.Outcome{Status: "done"}})
		r.connect().refused(rpcapi.CodeInvalidParams, rpcapi.SessionAuth, rpcapi.SessionAuthParams{Token: r.token(false), AgentID: id})
	}
	for name, want := range map[string]string{"Ünï-Code Bot": "name:n-code-bot", "../..": "", "世界": "", "A.B_c": "name:a-b-c"} {
		out, err := p.try(rpcapi.RunsStart, rpcapi.RunsStartParams{AgentName: name})
		if want == "" {
			if err == nil {
				t.Errorf("%q: %s", name, out)
			}
		} else if !strings.Contains(string(out), `"agent_id":"`+want+`"`) {
			t.Errorf("%q: %s %v", name, out, err)
		}
	}
}

func TestOutcomes(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	for _, outcome := range []string{`{}`, `null`, `{"status":"great"}`, `"success"`, `{"status":1}`} {
		p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`","outcome":`+outcome+`}`))
	}
	p.refused(rpcapi.CodeInvalidParams, rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`"}`))
	for _, status := range []string{"success", "partial_success", "give_up", "timeout", "failure", "done"} {
		run := p.startRun(rpcapi.RunsStartParams{}).RunID
		var out rpcapi.RunsCompleteResult
		p.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`","outcome":{"status":"`+status+`","evidence":[{"kind":"x"}],"metrics":{"turns":1}}}`), &out)
		if !out.OK || out.RunID != run {
			t.Errorf("%+v", out)
		}
	}
}

func TestATraceIsReadFromACursor(t *testing.T) {
	r := start(t, nil)
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	p.record(run, 3)
	for cursor, want := range map[int]int{0: 4, 1: 3, 3: 1, 4: 0, 99: 0} {
		var tr rpcapi.RunsGetTraceResult
		p.must(rpcapi.RunsGetTrace, rpcapi.RunsGetTraceParams{RunID: run, Cursor: cursor}, &tr)
		if len(tr.Records) != want || tr.Records == nil || tr.Cursor != cursor || tr.Next != 4 || tr.AgentID != "a" {
			t.Errorf("from %d: %+v", cursor, tr)
		}
	}
	raw, err := p.try(rpcapi.RunsGetTrace, rpcapi.RunParams{RunID: "none"})
	if err != nil || string(raw) != `{"run_id":"none","not_found":true}` {
		t.Errorf("%s %v", raw, err)
	}
}

// TestALongTraceComesInParts reads one that is longer than a reply may be.
func TestALongTraceComesInParts(t *testing.T) {
	r := start(t, &daemon.Options{Limits: daemon.Limits{Rate: -1}})
	p := r.as("a")
	run := p.startRun(rpcapi.RunsStartParams{}).RunID
	turn := `{"output":[` + strings.Repeat(`"`+strings.Repeat("x", 15000)+`",`, 14) + `0]}`
	batch := json.RawMessage(`{"run_id":"` + run + `","turns":[` + strings.Repeat(turn+",", 39) + turn + `]}`)
	for range 5 {
		p.must(rpcapi.RunsRecordTurns, batch, nil)
	}
	got, replies := 0, 0
	for more := true; more; replies++ {
		var tr rpcapi.RunsGetTraceResult
		p.must(rpcapi.RunsGetTrace, rpcapi.RunsGetTraceParams{RunID: run, Cursor: got}, &tr)
		if len(tr.Records) == 0 || tr.Next != got+len(tr.Records) || tr.Status != "in_progress" {
			t.Fatalf("from %d: %d records, next %d", got, len(tr.Records), tr.Next)
		}
		got, more = tr.Next, tr.More
	}
	if got != 201 || replies != 2 {
		t.Errorf("%d records in %d replies", got, replies)
	}
}
