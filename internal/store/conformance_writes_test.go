package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

func started(id runtrace.ID) *runtrace.Started {
	return &runtrace.Started{RunID: id.Run, AgentID: id.Agent, Intent: "to see", StartedAt: "2026-01-02T03:04:05.000000Z"}
}

func start(t testing.TB, s store.Store, agent, run string) runtrace.ID {
	t.Helper()
	id := runtrace.ID{Agent: agent, Run: run}
	if existing, err := s.Start(context.Background(), started(id)); err != nil || existing {
		t.Fatalf("start %s: existing %t, %v", id, existing, err)
	}
	return id
}

// turn is one whose prompt says which it is.
func turn(text string) runtrace.Turn { return runtrace.Turn{Prompt: &text, Index: 77} }

func add(t testing.TB, s store.Store, id runtrace.ID, texts ...string) int {
	t.Helper()
	turns := make([]runtrace.Turn, len(texts))
	for i, text := range texts {
		turns[i] = turn(text)
	}
	base, err := s.Append(context.Background(), id, turns)
	if err != nil {
		t.Fatalf("append to %s: %v", id, err)
	}
	return base
}

func end(t testing.TB, s store.Store, id runtrace.ID) {
	t.Helper()
	e := &runtrace.Ended{Status: runtrace.Completed, Outcome: json.RawMessage(`{"status":"success"}`), EndedAt: "2026-01-02T03:04:06.000000Z"}
	if err := s.End(context.Background(), id, e); err != nil {
		t.Fatalf("end %s: %v", id, err)
	}
}

func trace(t testing.TB, s store.Store, id runtrace.ID, o *store.TraceOptions) *store.Trace {
	t.Helper()
	tr, err := s.Trace(context.Background(), id, o)
	if err != nil {
		t.Fatalf("trace of %s: %v", id, err)
	}
	return tr
}

// check looks at a whole trace: one start, turns of these texts with indices from 0, and an end where the run has ended.
func check(t testing.TB, s store.Store, id runtrace.ID, texts ...string) {
	t.Helper()
	tr := trace(t, s, id, nil)
	if tr.ID != id || tr.From != 0 || tr.Next != len(tr.Records) || tr.More {
		t.Errorf("trace of %s: %s, from %d to %d of %d, more %t", id, tr.ID, tr.From, tr.Next, len(tr.Records), tr.More)
	}
	want := 1 + len(texts)
	if tr.Status != runtrace.InProgress {
		want++
	}
	if len(tr.Records) != want {
		t.Fatalf("%d records, want %d: %s", len(tr.Records), want, bytes.Join(tr.Records, []byte("\n")))
	}
	for i, line := range tr.Records {
		rec, err := runtrace.Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch {
		case i == 0:
			if rec.Started == nil || rec.Started.ID() != id {
				t.Errorf("begins with %s", line)
			}
		case i <= len(texts):
			if rec.Turn == nil || rec.Turn.Index != i-1 || rec.Turn.Prompt == nil || *rec.Turn.Prompt != texts[i-1] {
				t.Errorf("record %d is %s, want turn %q", i, line, texts[i-1])
			}
		case rec.Ended == nil || rec.Ended.Status != tr.Status || rec.Ended.RunID != id.Run || rec.Ended.AgentID != id.Agent:
			t.Errorf("ends with %s", line)
		}
	}
}

func find(t testing.TB, s store.Store, id runtrace.ID, status runtrace.Status, turns int) {
	t.Helper()
	sum, err := s.Find(context.Background(), id.Run)
	if err != nil || sum.ID != id || sum.Status != status || sum.Turns != turns || (sum.EndedAt == "") != (status == runtrace.InProgress) {
		t.Errorf("found %+v, %v; want %s %s with %d turns", sum, err, id, status, turns)
	}
}

func life(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	find(t, s, id, runtrace.InProgress, 0)
	check(t, s, id)
	if base := add(t, s, id, "one", "two"); base != 0 {
		t.Errorf("base %d", base)
	}
	find(t, s, id, runtrace.InProgress, 2)
	if base := add(t, s, id, "three"); base != 2 {
		t.Errorf("base %d", base)
	}
	check(t, s, id, "one", "two", "three")
	end(t, s, id)
	find(t, s, id, runtrace.Completed, 3)
	check(t, s, id, "one", "two", "three")
	if base, err := s.Append(t.Context(), start(t, s, "a", "none"), nil); base != 0 || err != nil {
		t.Errorf("no turns: %d, %v", base, err)
	}
	if st := s.Stats(); st.Started != 2 || st.Turns != 3 || st.Ended != 1 {
		t.Errorf("stats %+v", st)
	}
	if err := s.Health(); err != nil {
		t.Error(err)
	}
}

// The lines are what everybody reads: they stand here byte for byte.
func lines(t *testing.T, s store.Store) {
	id := runtrace.ID{Agent: "bulldozer", Run: "run-1"}
	name, tool, param := "The \"Bulldozer\"", "drive_cli", "command"
	st := started(id)
	st.AgentName, st.Recording = &name, &runtrace.Recording{ID: "rec-1"}
	if _, err := s.Start(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	turns := []runtrace.Turn{
		{Tool: &tool, Parameters: json.RawMessage("{\"n\": 1.0,\n\"b\":[]}"), Output: json.RawMessage("null"), CLIOutcome: runtrace.Exited(0)},
		{Tool: &tool, CLIOutcome: runtrace.TimedOut(), VerifierVerdict: runtrace.VerdictFail},
		{PolicyRejected: &runtrace.PolicyRejected{Rule: "no_rm", Param: &param, Reason: "é\n"}},
	}
	if _, err := s.Append(t.Context(), id, turns); err != nil {
		t.Fatal(err)
	}
	end(t, s, id)
	want := []string{
		`{"record":"started","run_id":"run-1","agent_id":"bulldozer","agent_name":"The \"Bulldozer\"","intent":"to see","started_at":"2026-01-02T03:04:05.000000Z","recording":{"id":"rec-1"}}`,
		`{"record":"turn","index":0,"tool":"drive_cli","parameters":{"n": 1.0,"b":[]},"output":null,"cli_outcome":{"outcome":"exited","code":0},"verifier_verdict":"not_run"}`,
		`{"record":"turn","index":1,"tool":"drive_cli","parameters":null,"cli_outcome":{"outcome":"timeout"},"verifier_verdict":"fail"}`,
		`{"record":"turn","index":2,"parameters":null,"verifier_verdict":"not_run","policy_rejected":{"rule":"no_rm","param":"command","reason":"é\n"}}`,
		`{"record":"ended","run_id":"run-1","agent_id":"bulldozer","status":"completed","outcome":{"status":"success"},"ended_at":"2026-01-02T03:04:06.000000Z"}`,
	}
	for i, line := range trace(t, s, id, nil).Records {
		if string(line) != want[i] {
			t.Errorf("got  %s\nwant %s", line, want[i])
		}
	}
}

func startTwice(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	add(t, s, id, "one")
	for range 2 {
		if existing, err := s.Start(t.Context(), started(id)); !existing || err != nil {
			t.Errorf("again: %t, %v", existing, err)
		}
		other := runtrace.ID{Agent: "b", Run: "r"}
		if existing, err := s.Start(t.Context(), started(other)); existing || !errors.Is(err, store.ErrOther) {
			t.Errorf("another's: %t, %v", existing, err)
		}
		if _, err := s.Trace(t.Context(), other, nil); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("another's trace: %v", err)
		}
		check(t, s, id, "one")
		if sum, _ := s.Find(t.Context(), "r"); sum.Status == runtrace.InProgress {
			end(t, s, id)
		}
	}
}

// Of many that start the same run one does, and the others find it there.
func startAtOnce(t *testing.T, s store.Store) {
	for round := range 20 {
		id := runtrace.ID{Agent: "a", Run: fmt.Sprint("r", round)}
		var group sync.WaitGroup
		var mu sync.Mutex
		fresh, taken := map[string]int{}, 0
		for i := range 8 {
			mine := id
			mine.Agent = string(rune('a' + i%2))
			group.Go(func() {
				existing, err := s.Start(t.Context(), started(mine))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, store.ErrOther):
					taken++
				case err != nil:
					t.Error(err)
				case !existing:
					fresh[mine.Agent]++
				}
			})
		}
		group.Wait()
		if len(fresh) != 1 || fresh["a"]+fresh["b"] != 1 || taken != 4 {
			t.Errorf("begun %v, refused %d", fresh, taken)
		}
	}
}

func names(t *testing.T, s store.Store) {
	for _, bad := range []string{"", ".", "..", "../x", "a/b", `a\b`, "%2e%2e", "a\x00", "-a", ".a", "ａ", "a b", strings.Repeat("a", 129), strings.Repeat("a", 10000)} {
		var wrong *runtrace.NameError
		if _, err := s.Start(t.Context(), started(runtrace.ID{Agent: "a", Run: bad})); !errors.As(err, &wrong) || wrong.What != "run_id" {
			t.Errorf("run %.20q: %v", bad, err)
		}
		if _, err := s.Start(t.Context(), started(runtrace.ID{Agent: bad, Run: "r"})); !errors.As(err, &wrong) || wrong.What != "agent_id" {
			t.Errorf("agent %.20q: %v", bad, err)
		}
		if _, err := s.Find(t.Context(), bad); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("find %.20q: %v", bad, err)
		}
		if _, err := s.Trace(t.Context(), runtrace.ID{Agent: "a", Run: bad}, nil); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("trace %.20q: %v", bad, err)
		}
	}
	for _, good := range []string{"a", "A-1", "name:x", "0._:-", strings.Repeat("z", 128)} {
		id := start(t, s, good, good)
		add(t, s, id, good)
		check(t, s, id, good)
	}
}

func indices(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	turns := []runtrace.Turn{turn("x"), turn("y")}
	turns[0].Index, turns[1].Index = 5, -3
	if base, err := s.Append(t.Context(), id, turns); base != 0 || err != nil {
		t.Fatal(base, err)
	}
	if turns[0].Index != 5 || turns[1].Index != -3 {
		t.Errorf("the caller's turns were changed: %+v", turns)
	}
	check(t, s, id, "x", "y")
}

// Two batches of wrong indices at once, again and again, give 0..n.
func concurrentBatches(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	var group sync.WaitGroup
	for w := range 2 {
		group.Go(func() {
			for i := range 50 {
				texts := make([]string, 5)
				for k := range texts {
					texts[k] = fmt.Sprint(w, "-", i, "-", k)
				}
				add(t, s, id, texts...)
			}
		})
	}
	group.Wait()
	tr := trace(t, s, id, nil)
	if len(tr.Records) != 501 {
		t.Fatalf("%d records", len(tr.Records))
	}
	next := [2]int{} // each writer's own turns are in its order, and a batch stays together
	for i, line := range tr.Records[1:] {
		rec, err := runtrace.Parse(line)
		if err != nil || rec.Turn == nil || rec.Turn.Index != i {
			t.Fatalf("turn %d: %s, %v", i, line, err)
		}
		var w, batch, k int
		if _, err := fmt.Sscanf(*rec.Turn.Prompt, "%d-%d-%d", &w, &batch, &k); err != nil || batch*5+k != next[w] || k != i%5 {
			t.Fatalf("turn %d: %s", i, line)
		}
		next[w]++
	}
}

func reason(err error) store.Reason {
	var d *store.Dropped
	if errors.As(err, &d) {
		return d.Reason
	}
	return store.Reason(fmt.Sprint(err))
}

func dropped(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	for _, foreign := range []runtrace.ID{{Agent: "b", Run: "r"}, {Agent: "a", Run: "s"}, {}, {Agent: "a", Run: "../r"}} {
		if _, err := s.Append(t.Context(), foreign, []runtrace.Turn{turn("x")}); reason(err) != store.RunNotFound {
			t.Errorf("%s: %v", foreign, err)
		}
	}
	bad := turn("x")
	bad.Parameters = json.RawMessage(`{"a":`)
	var invalid *runtrace.InvalidError
	if _, err := s.Append(t.Context(), id, []runtrace.Turn{turn("y"), bad}); !errors.As(err, &invalid) || invalid.Key != "parameters" {
		t.Errorf("no JSON: %v", err)
	}
	end(t, s, id)
	if _, err := s.Append(t.Context(), id, []runtrace.Turn{turn("x")}); reason(err) != store.RunTerminal {
		t.Error(err)
	}
	check(t, s, id)
}

// A batch goes in whole or not at all.
func limit(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	var texts []string
	for i := range runtrace.MaxTurns - 1 {
		texts = append(texts, fmt.Sprint(i))
	}
	for i := 0; i < len(texts); i += runtrace.MaxBatch {
		add(t, s, id, texts[i:min(i+runtrace.MaxBatch, len(texts))]...)
	}
	if _, err := s.Append(t.Context(), id, []runtrace.Turn{turn("x"), turn("y")}); reason(err) != store.RunTurnLimit {
		t.Error(err)
	}
	add(t, s, id, "last")
	if _, err := s.Append(t.Context(), id, []runtrace.Turn{turn("x")}); reason(err) != store.RunTurnLimit {
		t.Error(err)
	}
	end(t, s, id)
	check(t, s, id, append(texts, "last")...)
}

func tooLarge(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	long := strings.Repeat("ü", runtrace.MaxString)
	add(t, s, id, long)
	check(t, s, id, runtrace.Truncate(long))
	large := turn("x")
	large.Output, _ = json.Marshal(strings.Split(strings.Repeat("many short ones ", runtrace.MaxLine/16), " "))
	if _, err := s.Append(t.Context(), id, []runtrace.Turn{turn("y"), large}); reason(err) != store.TurnTooLarge {
		t.Error(err)
	}
	check(t, s, id, runtrace.Truncate(long))
	var refused *runtrace.TooLargeError
	if err := s.End(t.Context(), id, &runtrace.Ended{Status: runtrace.Completed, Outcome: large.Output}); !errors.As(err, &refused) {
		t.Error(err)
	}
	find(t, s, id, runtrace.InProgress, 1)
}

func endTwice(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	for _, foreign := range []runtrace.ID{{Agent: "b", Run: "r"}, {Agent: "a", Run: "s"}, {}} {
		if err := s.End(t.Context(), foreign, &runtrace.Ended{Status: runtrace.Completed}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", foreign, err)
		}
	}
	end(t, s, id)
	if err := s.End(t.Context(), id, &runtrace.Ended{Status: runtrace.Incomplete}); !errors.Is(err, store.ErrEnded) {
		t.Error(err)
	}
	find(t, s, id, runtrace.Completed, 0)
	check(t, s, id)
}

func endAtOnce(t *testing.T, s store.Store) {
	id := start(t, s, "a", "r")
	var group sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		group.Go(func() { results[i] = s.End(context.Background(), id, &runtrace.Ended{Status: runtrace.Completed}) })
	}
	group.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, store.ErrEnded) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d ended it", won)
	}
	check(t, s, id)
}
