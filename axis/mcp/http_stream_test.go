package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func recordSSE(t *testing.T, run func(c *webClient)) *webRig {
	server := webServer()
	g := recordWeb(t, sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil))
	run(g.connect(overSSE))
	return g
}

// Over HTTP+SSE nobody reads the answer of a POST: a refusal comes on the stream, at once, and no call gets the answer of another one, whether
// its id is the recorded one of that or not.
func TestRefusedOverSSE(t *testing.T) {
	t.Parallel()
	g := recordSSE(t, func(c *webClient) {
		for _, text := range []string{"a", "b", "c"} {
			c.call("echo", text, nil)
		}
		c.close()
	})
	for _, pings := range []int{0, 1} {
		g.replay(func(again *webRig) {
			c := again.connect(overSSE)
			for range pings { // each takes an id
				if err := c.Ping(context.Background(), nil); err != nil {
					c.t.Error(err)
				}
			}
			if got := c.call("echo", "a", nil); got != "echo a" {
				c.t.Errorf("%d pings: first %q", pings, got)
			}
			if got := c.call("echo", "other", nil); !strings.Contains(got, "not on the tape: tools/call") {
				c.t.Errorf("%d pings: the changed call got %q", pings, got)
			}
			if got := c.call("echo", "c", nil); got != "echo c" {
				c.t.Errorf("%d pings: last %q", pings, got)
			}
			c.close()
			again.end()
			if calls := strings.Join(again.calls(), "\n"); strings.Count(calls, "1 tools client tools/call true") != 3 ||
				strings.Count(calls, "tools/call true nearest is record") != 1 {
				c.t.Errorf("%d pings: the tape says\n%s", pings, calls)
			}
		})
	}
}

// A client that asks in another order gets each answer with the request that it answers.
func TestOtherOrderOverSSE(t *testing.T) {
	t.Parallel()
	run := func(c *webClient, texts ...string) map[string]string {
		seen := make(map[string]string)
		for _, text := range texts {
			seen[text] = c.call("echo", text, nil)
		}
		c.close()
		return seen
	}
	var want map[string]string
	g := recordSSE(t, func(c *webClient) { want = run(c, "a", "b", "c") })
	g.replay(func(again *webRig) {
		if got := run(again.connect(overSSE), "c", "b", "a"); fmt.Sprint(got) != fmt.Sprint(want) {
			again.t.Errorf("replayed %v, recorded %v", got, want)
		}
		again.faithful()
	})
}
