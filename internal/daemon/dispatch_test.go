package daemon

import (
	"context"
	"errors"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// TestLongRepliesAreMadeOneAtATime holds that a client which does not read cannot have a reply of 32 MiB made for each request
// that it may have in service.
func TestLongRepliesAreMadeOneAtATime(t *testing.T) {
	s := &session{long: make(chan struct{}, 1)}
	ran, told := 0, 0
	do := alone(func(_ context.Context, _ *session, r *jsonrpc.Request) (any, error) {
		ran++
		r.After = func() { told++ }
		return nil, nil
	})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 3 {
		r := &jsonrpc.Request{}
		if _, err := do(t.Context(), s, r); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{rpcapi.RunsGetTrace, rpcapi.RunsSubscribe, rpcapi.RunsList, rpcapi.RunsVerdicts} {
			if _, err := methods[name].do(over, s, &jsonrpc.Request{Params: []byte(`{"run_id":5}`)}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s beside another: %v", name, err)
			}
		}
		r.After() // it is queued
		if ran != i+1 || told != i+1 {
			t.Errorf("ran %d, told %d", ran, told)
		}
	}
}
