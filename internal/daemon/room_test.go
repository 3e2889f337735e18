package daemon

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

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
		d := inMemory(t, Options{NoAuth: true, Limits: Limits{SessionBytes: 64 << 10}})
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
		d := inMemory(t, Options{NoAuth: true, Limits: Limits{SessionBytes: 4 << 10}})
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
