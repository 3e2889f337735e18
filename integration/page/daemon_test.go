//go:build browser

package page

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/ui"
)

// A person decides in the page about what an agent proposes to a real daemon.
func TestDaemonInABrowser(t *testing.T) {
	chromium := browser(t)
	d, err := daemon.Open(t.Context(), &daemon.Options{Socket: filepath.Join(t.TempDir(), "s"), NoAuth: true, DecideWithin: 1 << 40,
		Policies: []policy.Rule{{Name: "ask", Rule: policy.Approve, Target: "ship"}}})
	must(t, err)
	go d.Serve(context.Background())
	t.Cleanup(func() { d.Shutdown(context.Background()) })
	dial := func(o client.Options) *client.Client {
		c, err := client.Dial(t.Context(), d.URL(), &o)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	ship := client.Func("ship", "", func(context.Context, struct{}) (any, error) { return "<img src=x onerror=pwned=1>", nil })
	agent := dial(client.Options{AgentID: "coder", Tools: []client.Tool{ship}})
	_, err = agent.Start(t.Context(), rpcapi.RunsStartParams{Intent: "<script>pwned=1</script> ship it"})
	must(t, err)
	ended := make(chan string, 2)
	go func() {
		for range 2 {
			res, err := agent.Submit(t.Context(), &rpcapi.Proposal{Actions: []rpcapi.Action{{Type: "tool_call", Tool: "ship", Parameters: []byte(`{"to":"prod"}`)}}})
			if err != nil {
				ended <- err.Error()
				continue
			}
			ended <- res.Results[0].Status
		}
	}()
	shown := page.ShowRecordings("none", nil, nil)
	shown.Daemon = &page.Daemon{Client: dial(client.Options{Host: true}), URL: d.URL()}
	l, err := page.Listen(t.Context(), "127.0.0.1:0")
	must(t, err)
	server, err := page.NewServer(shown, page.Bundle{Script: ui.Script, Style: ui.Style}, l.Addr())
	must(t, err)
	go server.Serve(t.Context(), l)
	if n := drive(t, chromium, server.URL(), "daemon"); n != 3 {
		t.Fatalf("the browser did %d checks of 3", n)
	}
	if first, second := <-ended, <-ended; first != proposal.Succeeded || second != proposal.Rejected {
		t.Fatalf("the agent was told %s, %s", first, second)
	}
}
