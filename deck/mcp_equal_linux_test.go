package deck_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// TestEqualServersStartedInAnotherOrder replays a client that talks with equal servers, and starts them in another order: each is
// answered from its own conversation.
func TestEqualServersStartedInAnotherOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := b.server("thing-server")
	words := []string{"zero", "one", "two"}
	scene := func(order ...int) *mcpScene {
		s := &mcpScene{}
		for range words {
			s.Servers = append(s.Servers, mcpStart{Argv: []string{path, "thing"}})
		}
		for range 2 {
			for word, server := range order {
				s.Calls = append(s.Calls, mcpCall{server, "tools/list", nil}, tool(server, "echo", map[string]any{"text": words[word]}),
					tool(server, "make", map[string]any{"Name": words[word]}))
			}
		}
		return s
	}
	res, _ := b.recordScene(scene(0, 1, 2))
	b.gone(path)
	for _, order := range [][]int{{1, 2, 0}, {2, 1, 0}, {0, 2, 1}} {
		argv, _ := b.self("mcp-client", b.scene(scene(order...)))
		v, out := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv, Patience: shortly})
		for word := range words {
			if n := strings.Count(out, `\"text\":\"`+words[word]+`\"`); n != 2 {
				t.Errorf("started as %v, the client heard %q %d times:\n%s", order, words[word], n, out)
			}
		}
		for _, d := range v.Divergences {
			if !strings.HasPrefix(string(d.Category), "process_") { // which server is which stands in what it prints
				t.Errorf("started as %v: %+v", order, d)
			}
		}
		if len(v.Refused)+len(v.Unasked) > 0 {
			t.Errorf("started as %v: refused %+v, unasked %+v", order, v.Refused, v.Unasked)
		}
	}
}
