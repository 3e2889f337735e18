package deck_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

const mcpCanary = "cnryMCPx7Q2x9p4Vt8KrW3nHd"

// TestServersSecrets: what is known for a secret, by its variable or by a name in what is said, is in nothing that is written of a
// talk with an MCP server, and a replay is green with the same value, with another and with none.
func TestServersSecrets(t *testing.T) {
	t.Parallel()
	in := func(text string) map[string]any { return map[string]any{"text": text} }
	for name, c := range map[string]struct {
		variable string
		args     []string
		vars     []string // variables that the client gives its server
		calls    []mcpCall
	}{
		"known from the beginning": {
			"CANARY_API_KEY", nil, nil,
			[]mcpCall{
				tool(0, "echo", in("say ${SECRET} twice: ${SECRET}")), tool(0, "env", map[string]any{"Name": "CANARY_API_KEY"}),
				tool(0, "echo", in("and {\\\"again\\\":\\\"${SECRET}\\\"}")), {0, "resources/read", map[string]any{"uri": "file:///${SECRET}"}},
			},
		},
		"an argument of the server": {"NOTE", []string{"--api-key", "${SECRET}"}, nil, []mcpCall{tool(0, "echo", in("say ${SECRET}"))}},
		"a variable of the server": {
			"NOTE", nil, []string{"THING_TOKEN=${SECRET}"},
			[]mcpCall{tool(0, "env", map[string]any{"Name": "THING_TOKEN"}), tool(0, "echo", in("say ${SECRET}"))},
		},
		"named late": {
			"NOTE", nil, nil,
			[]mcpCall{
				tool(0, "echo", in("the note is ${SECRET}")), tool(0, "env", map[string]any{"Name": "NOTE"}), tool(0, "bad", in("${SECRET}")),
				tool(0, "echo", map[string]any{"api_key": "${SECRET}"}),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			clean := slices.Clip(b.env)
			path := b.server("thing-server")
			s := one(path, c.calls...)
			s.Servers[0].Argv = append(s.Servers[0].Argv, c.args...)
			s.Servers[0].Env = c.vars
			scene := strings.ReplaceAll(b.scene(s), "SECRET", c.variable)
			b.env = append(slices.Clip(clean), c.variable+"="+mcpCanary)
			res, out := b.record("mcp-client", scene)
			if res.Exit.Code != 0 || !strings.Contains(out, mcpCanary) {
				t.Fatalf("exit %+v, and the client got\n%s", res.Exit, out)
			}
			b.gone(path)
			lookFor(t, res.Recording.Dir, mcpCanary)
			b.sound(res.Recording.Dir)
			for what, now := range map[string]string{"the same": mcpCanary, "another": "Zother1Y0vjGd6BqTsEfA8ttx", "no": ""} {
				if rare(what, "the same", "no") && name != "known from the beginning" {
					continue
				}
				t.Run(what, func(t *testing.T) {
					b.t = t
					env := slices.Clone(clean)
					if now != "" {
						env = append(env, c.variable+"="+now)
					}
					kept := filepath.Join(t.TempDir(), "replay")
					v, said := b.replay(res.Recording, &deck.ReplayOptions{Out: kept, Env: env})
					b.green(v)
					if now != "" && !strings.Contains(said, now) {
						t.Errorf("the client got\n%s", said)
					}
					lookFor(t, kept, mcpCanary)
					b.sound(kept)
				})
			}
		})
	}
}
