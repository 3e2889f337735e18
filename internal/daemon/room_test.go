package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

func TestAQuotaCountsWithinAnother(t *testing.T) {
	all := &quota{most: 100}
	one, two := &quota{most: 80, up: all}, &quota{most: 80, up: all}
	if one.take(81) || !one.take(80) || two.take(21) || !two.take(20) || two.take(1) {
		t.Error("it takes what it must not, or not what it may")
	}
	one.take(-30)
	if !two.take(30) || all.used.Load() != 100 {
		t.Errorf("%d", all.used.Load())
	}
	one.drop()
	two.drop()
	if all.used.Load() != 0 {
		t.Errorf("%d bytes are left", all.used.Load())
	}
}

// TestWhatAConnectionKeepsIsBoundedAndGivenBack fills the room of a connection with each kind of thing, takes it away again, and
// ends it.
func TestWhatAConnectionKeepsIsBoundedAndGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true, Limits: Limits{SessionBytes: 64 << 10}})
		c, hang := d.dial(t)
		call := func(method, params string) error {
			return c.Call(context.Background(), c.NewID(), method, json.RawMessage(params), nil)
		}
		big := strings.Repeat("x", 30<<10)
		fill := []struct{ method, params, back, how string }{
			{rpcapi.StateSet, `{"key":"k%","value":"` + big + `"}`, rpcapi.StateSet, `{"key":"k%","value":1}`},
			{rpcapi.ToolsRegister, `[{"name":"t%","description":"` + big + `"}]`, rpcapi.ToolsUnregister, `{"name":"t%"}`},
			{rpcapi.PolicyRegister, `{"name":"p%","rule":"require_state","key":"k","value":"` + big[:10000] + `"}`, rpcapi.PolicyUnregister, `{"name":"p%"}`},
		}
		for _, f := range fill {
			n := 0
			for ; n < 10; n++ {
				if err := call(f.method, strings.ReplaceAll(f.params, "%", string(rune('a'+n)))); err != nil {
					break
				}
			}
			if n == 0 || n == 10 {
				t.Fatalf("%s was taken %d times", f.method, n)
			}
			for i := range n {
				if err := call(f.back, strings.ReplaceAll(f.how, "%", string(rune('a'+i)))); err != nil {
					t.Fatal(err)
				}
			}
			if used := d.room.used.Load(); used > 1<<10 {
				t.Errorf("%s: %d bytes are still counted", f.method, used)
			}
		}
		if err := call(rpcapi.SessionInit, `{"tools":[{"name":"t"}],"policies":[{"name":"p","rule":"deny_tool","target":"t"},{"name":"bad","rule":"x"}]}`); err == nil {
			t.Error("session.init took a rule that is none")
		}
		if used := d.room.used.Load(); used > 1<<10 {
			t.Errorf("a session.init that failed: %d bytes are still counted", used)
		}
		_ = call(rpcapi.ToolsRegister, `[{"name":"t"}]`)
		hang()
		if used := d.room.used.Load(); used != 0 {
			t.Errorf("%d bytes are left", used)
		}
	})
}

func TestAResultThatIsNotKeptDoesNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true, Limits: Limits{SessionBytes: 4 << 10}})
		c, hang := d.dial(t)
		write := `{"idempotent":true,"proposal":{"id":"p","actions":[{"id":"` + strings.Repeat("a", 5000) + `","type":"state_read","parameters":{"key":"k"}}]}}`
		if out := ask(t, c, rpcapi.ProposalSubmit, write); !strings.Contains(out, `"succeeded"`) {
			t.Error(out)
		}
		err := c.Call(context.Background(), c.NewID(), rpcapi.ProposalSubmit, json.RawMessage(write), nil)
		if err == nil || !strings.Contains(err.Error(), "ran already") {
			t.Errorf("the second time: %v", err)
		}
		hang()
	})
}

// TestWhatAProposalGivesIsBounded reads a long value again and again, and once more when that proposal has given its room back.
func TestWhatAProposalGivesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true, Limits: Limits{SessionBytes: 64 << 10}})
		c, hang := d.dial(t)
		ask(t, c, rpcapi.StateSet, `{"key":"k","value":"`+strings.Repeat("x", 10<<10)+`"}`)
		read := `{"type":"state_read","parameters":{"key":"k"},"failure_behavior":"skip","idempotent":true}`
		for range 2 {
			out := ask(t, c, rpcapi.ProposalSubmit, `{"proposal":{"actions":[`+strings.Repeat(read+",", 20)+read+`]}}`)
			if ok, full := strings.Count(out, `"succeeded"`), strings.Count(out, "no room is left"); ok < 3 || ok > 6 || ok+full != 21 {
				t.Errorf("%d outputs were kept, %d were refused", ok, full)
			}
		}
		hang()
		synctest.Wait()
		if used := d.room.used.Load(); used != 0 {
			t.Errorf("%d bytes are left", used)
		}
	})
}

// TestAForgottenRepeatTakesNoRoom lets a submission end that so many followed that it is not remembered.
func TestAForgottenRepeatTakesNoRoom(t *testing.T) {
	r := &repeats{room: &quota{most: 1 << 30}}
	quick := func() (*proposal.Result, error) { return &proposal.Result{}, nil }
	_, _ = r.once(t.Context(), "slow", func() (*proposal.Result, error) {
		for i := range maxRepeats {
			_, _ = r.once(t.Context(), strconv.Itoa(i), quick)
		}
		return &proposal.Result{ProposalID: strings.Repeat("x", 1000)}, nil
	})
	if used := r.room.used.Load(); used != 0 {
		t.Errorf("%d bytes are taken", used)
	}
}

// TestASubscriptionKeepsNoSnapshot follows a run that has turns.
func TestASubscriptionKeepsNoSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true})
		c, hang := d.dial(t)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		ask(t, c, rpcapi.RunsRecordTurns, `{"run_id":"r","turns":[{},{}]}`)
		if got := ask(t, c, rpcapi.RunsSubscribe, `{"run_id":"r"}`); !strings.Contains(got, `"cursor":2`) || strings.Count(got, `"record":"turn"`) != 2 {
			t.Errorf("%s", got)
		}
		synctest.Wait()
		d.mu.Lock()
		for s := range d.sessions {
			s.subs.mu.Lock()
			for _, u := range s.subs.byRun {
				if u.events.Turns != nil {
					t.Errorf("%d turns are kept", len(u.events.Turns))
				}
			}
			s.subs.mu.Unlock()
		}
		d.mu.Unlock()
		hang()
	})
}

// TestASnapshotIsNoLongerThanAClientTakes follows a run of 40 MiB.
func TestASnapshotIsNoLongerThanAClientTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true})
		c, hang := d.dial(t)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		text := `"` + strings.Repeat("x", 16000) + `"`
		turn := `{"output":[` + strings.Repeat(text+",", 15) + text + `]}`
		for range 20 {
			ask(t, c, rpcapi.RunsRecordTurns, `{"run_id":"r","turns":[`+strings.Repeat(turn+",", 7)+turn+`]}`)
		}
		got := ask(t, c, rpcapi.RunsSubscribe, `{"run_id":"r"}`)
		if n := strings.Count(got, `"record":"turn"`); len(got) > maxTraceBytes+1<<20 || n < 100 || !strings.Contains(got, fmt.Sprintf(`"cursor":%d,`, n)) {
			t.Errorf("%d turns, %d bytes: …%s", n, len(got), got[len(got)-100:])
		}
		hang()
	})
}
