package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// each runs a benchmark by a number of connections at once, each with its own run. An operation is one request and its reply,
// through a real socket.
func each(b *testing.B, prepare func(p *peer), request func(p *peer, run string) error) {
	for _, conns := range []int{1, 64} {
		b.Run(fmt.Sprintf("conns=%d", conns), func(b *testing.B) {
			r := start(b, &daemon.Options{Limits: daemon.Limits{Rate: -1}})
			work := make(chan struct{}, conns)
			done := make(chan error, conns)
			for range conns {
				p := r.as("a")
				prepare(p)
				go func() { done <- drive(p, work, request) }()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				work <- struct{}{}
			}
			close(work)
			for range conns {
				if err := <-done; err != nil {
					b.Error(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// drive sends a request for each piece of work, over runs of at most 1,500 turns.
func drive(p *peer, work <-chan struct{}, request func(*peer, string) error) error {
	run, n := p.startRun(rpcapi.RunsStartParams{}).RunID, 0
	for range work {
		if n++; n > 1500 {
			p.must(rpcapi.RunsComplete, json.RawMessage(`{"run_id":"`+run+`","outcome":{"status":"done"}}`), nil)
			run, n = p.startRun(rpcapi.RunsStartParams{}).RunID, 0
		}
		if err := request(p, run); err != nil {
			return err
		}
	}
	return nil
}

const benchTurn = `{"index":0,"prompt":"look at the failing test","tool":"shell","parameters":{"command":"go test ./..."},` +
	`"output":{"exit_code":1,"stdout":"--- FAIL: TestX (0.00s)\n    x_test.go:12: want 1, got 2\nFAIL"},"verifier_verdict":"not_run"}`

func BenchmarkRecordTurns(b *testing.B) {
	each(b, func(*peer) {}, func(p *peer, run string) error {
		return p.Call(context.Background(), p.NewID(), rpcapi.RunsRecordTurns,
			json.RawMessage(`{"run_id":"`+run+`","turns":[`+benchTurn+`]}`), nil)
	})
}

func BenchmarkProposalSubmit(b *testing.B) {
	each(b, func(p *peer) {
		p.answers("shell", `{"exit_code":0,"stdout":"ok"}`)
		p.must(rpcapi.PolicyRegister, json.RawMessage(`{"name":"no_rm","rule":"deny_tool_param","target":"shell","key":"command","pattern":"rm -rf"}`), nil)
	}, func(p *peer, _ string) error {
		return p.Call(context.Background(), p.NewID(), rpcapi.ProposalSubmit,
			json.RawMessage(`{"proposal":{"actions":[{"id":"a1","type":"tool_call","tool":"shell","parameters":{"command":"go test ./..."}}]}}`), nil)
	})
}
