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

// asked is a store that asks before each operation, named as the method in lower case, whether it is to fail.
type asked struct {
	store.Store
	before func(op, run string) error
}

func (s *asked) Start(ctx context.Context, r *runtrace.Started) (bool, error) {
	if err := s.before("start", r.RunID); err != nil {
		return false, err
	}
	return s.Store.Start(ctx, r)
}

func (s *asked) Append(ctx context.Context, id runtrace.ID, turns []runtrace.Turn) (int, error) {
	if err := s.before("append", id.Run); err != nil {
		return 0, err
	}
	return s.Store.Append(ctx, id, turns)
}

func (s *asked) End(ctx context.Context, id runtrace.ID, e *runtrace.Ended) error {
	if err := s.before("end", id.Run); err != nil {
		return err
	}
	return s.Store.End(ctx, id, e)
}

func (s *asked) Verdict(ctx context.Context, id runtrace.ID, verdict json.RawMessage) error {
	if err := s.before("verdict", id.Run); err != nil {
		return err
	}
	return s.Store.Verdict(ctx, id, verdict)
}

func (s *asked) Verdicts(ctx context.Context, id runtrace.ID) ([]json.RawMessage, error) {
	if err := s.before("verdicts", id.Run); err != nil {
		return nil, err
	}
	return s.Store.Verdicts(ctx, id)
}

func (s *asked) Find(ctx context.Context, run string) (store.Summary, error) {
	if err := s.before("find", run); err != nil {
		return store.Summary{}, err
	}
	return s.Store.Find(ctx, run)
}

func (s *asked) List(ctx context.Context, agent string) ([]store.Summary, error) {
	if err := s.before("list", ""); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, agent)
}

func (s *asked) Trace(ctx context.Context, id runtrace.ID, o *store.TraceOptions) (*store.Trace, error) {
	if err := s.before("trace", id.Run); err != nil {
		return nil, err
	}
	return s.Store.Trace(ctx, id, o)
}

func (s *asked) Subscribe(ctx context.Context, id runtrace.ID, o *store.SubscribeOptions) (*store.Subscription, error) {
	if err := s.before("subscribe", id.Run); err != nil {
		return nil, err
	}
	return s.Store.Subscribe(ctx, id, o)
}

func (s *asked) Health() error {
	if err := s.before("health", ""); err != nil {
		return err
	}
	return s.Store.Health()
}

// TestAStoreThatFailsAcknowledgesNothing lets each operation of the store fail in turn.
func TestAStoreThatFailsAcknowledgesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doorless(t, Options{NoAuth: true})
		var failing atomic.Value
		failing.Store("")
		d.store = &asked{Store: d.store, before: func(op, _ string) error {
			if op == failing.Load() {
				return errors.New("disk /secret/path on fire")
			}
			return nil
		}}
		ours, theirs := pipe()
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
		d := doorless(t, Options{NoAuth: true})
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
		d := doorless(t, Options{NoAuth: true})
		var misses atomic.Int64
		d.store = &asked{Store: d.store, before: func(op, run string) error {
			if op == "find" && run != "theirs" {
				misses.Add(1)
			}
			return nil
		}}
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
