package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tapedeck-dev/tapedeck/internal/daemon/door"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// TestAStoreThatFailsAcknowledgesNothing lets each operation of the store fail in turn.
func TestAStoreThatFailsAcknowledgesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := inMemory(t, Options{NoAuth: true})
		var failing atomic.Value
		failing.Store("")
		d.store.(*store.Memory).Fail = func(op string, _ runtrace.ID) error {
			if op == failing.Load() {
				return errors.New("disk /secret/path on fire")
			}
			return nil
		}
		ours, theirs := jsonrpc.Pipe()
		ran := 0
		c := jsonrpc.New(ours, &jsonrpc.Options{Handler: func(context.Context, *jsonrpc.Request) (any, error) { ran++; return 1, nil }})
		go func() { _ = c.Serve(context.Background()) }()
		go d.converse(d.serving, theirs, door.Peer{})
		ask(t, c, rpcapi.ToolsRegister, `[{"name":"t"}]`)
		ask(t, c, rpcapi.RunsStart, `{"agent_id":"a","idempotency_key":"r"}`)
		submit := `{"proposal":{"actions":[{"type":"tool_call","tool":"t"}]}}`
		for _, f := range []struct {
			op, method, params string
			ran                int
		}{
			{"start", rpcapi.RunsStart, `{"agent_id":"a"}`, 0},
			{"append", rpcapi.RunsRecordTurns, `{"run_id":"r","turns":[{}]}`, 0},
			{"end", rpcapi.RunsComplete, `{"run_id":"r","outcome":{"status":"done"}}`, 0},
			{"find", rpcapi.RunsGetTrace, `{"run_id":"r"}`, 0},
			{"trace", rpcapi.RunsGetTrace, `{"run_id":"r"}`, 0},
			{"list", rpcapi.RunsList, `{}`, 0},
			{"subscribe", rpcapi.RunsSubscribe, `{"run_id":"r"}`, 0},
			{"verdicts", rpcapi.RunsVerdicts, `{"run_id":"r"}`, 0},
			{"verdict", rpcapi.PolicyCheck, `{"tool":"t"}`, 0},
			{"verdict", rpcapi.ProposalSubmit, submit, 0}, // what cannot be written down does not run
			{"append", rpcapi.ProposalSubmit, submit, 1},  // it ran, and is not acknowledged
		} {
			failing.Store(f.op)
			ran = 0
			err := c.Call(context.Background(), c.NewID(), f.method, json.RawMessage(f.params), nil)
			var said *jsonrpc.Error
			if !errors.As(err, &said) || said.Code != rpcapi.CodeInternal || strings.Contains(said.Message, "secret") || said.Message == "internal error" {
				t.Errorf("%s while %s fails: %v", f.method, f.op, err)
			}
			if ran != f.ran {
				t.Errorf("%s while %s fails: the tool ran %d times", f.method, f.op, ran)
			}
		}
		failing.Store("health")
		if err := d.ready(); err == nil {
			t.Error("it says that it is ready")
		}
		failing.Store("")
		if got := ask(t, c, rpcapi.RunsRecordTurns, `{"run_id":"r","turns":[{}]}`); got != `{"run_id":"r","base_index":0,"count":1,"ok":true}` {
			t.Errorf("afterwards: %s", got)
		}
		c.Close(jsonrpc.CloseNormal, "")
		synctest.Wait()
	})
}

// TestParamsOfAnyShape asks every method with what it does not expect: an error of the protocol or a result, never a panic.
func TestParamsOfAnyShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := inMemory(t, Options{NoAuth: true})
		c, hang := d.dial(t)
		values := []string{`null`, `1`, `-1`, `1e400`, `"x"`, `""`, `true`, `[]`, `[1]`, `[null]`, `{}`, `{"x":{}}`, `[{}]`, `"\ud800"`, `"\u0000"`}
		keys := []string{"token", "agent_id", "protocol_version", "required_capabilities", "tools", "policies", "name", "rule", "session_id", "key",
			"tenant_id", "value", "proposal", "scope", "idempotent", "run_id", "outcome", "turns", "cursor", "limit", "intent", "idempotency_key",
			"recording", "tool", "parameters", "actions"}
		shapes := []string{`null`, `[]`, `{}`, `[1]`, `[null]`, `[[]]`, `[{"name":1}]`, `[{"name":"x","parameters":{"type":5}}]`,
			`{"proposal":{"actions":[{"type":"tool_call"}]}}`, `{"proposal":{"actions":[{"type":"nope","tool":1}]}}`, `{"proposal":{"actions":[null]}}`}
		for _, k := range keys {
			for _, v := range values {
				shapes = append(shapes, `{"`+k+`":`+v+`}`, `{"run_id":"r","name":"n","key":"k","tool":"t","`+k+`":`+v+`}`)
			}
		}
		for name := range methods {
			for _, shape := range shapes {
				err := c.Call(context.Background(), c.NewID(), name, json.RawMessage(shape), nil)
				var said *jsonrpc.Error
				if err != nil && (!errors.As(err, &said) || said.Message == "internal error") {
					t.Fatalf("%s %s: %v", name, shape, err)
				}
			}
		}
		hang()
	})
}

// TestAForeignRunTakesAnotherLook counts looks that find nothing, which are the slow ones: one for a run that is not there, and one
// for a run that is somebody else's.
func TestAForeignRunTakesAnotherLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := inMemory(t, Options{NoAuth: true})
		var misses atomic.Int64
		d.store.(*store.Memory).Fail = func(op string, id runtrace.ID) error {
			if op == "find" && id.Run != "theirs" {
				misses.Add(1)
			}
			return nil
		}
		owner, bye := d.dial(t)
		ask(t, owner, rpcapi.RunsStart, `{"agent_id":"owner","idempotency_key":"theirs"}`)
		c, hang := d.dial(t)
		ask(t, c, rpcapi.SessionAuth, `{"agent_id":"stranger"}`)
		for _, run := range []string{"theirs", "none"} {
			misses.Store(0)
			ask(t, c, rpcapi.RunsGetTrace, `{"run_id":"`+run+`"}`)
			if n := misses.Load(); n != 1 {
				t.Errorf("%s: %d looks found nothing", run, n)
			}
		}
		hang()
		bye()
	})
}
