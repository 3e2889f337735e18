package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// A person on a terminal is asked about what an agent proposes, and the agent is told what they said.
func TestSuperviseOnATerminal(t *testing.T) {
	dir := t.TempDir()
	d, err := daemon.Open(t.Context(), &daemon.Options{Socket: filepath.Join(dir, "s"), NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(context.Background()) }()
	t.Cleanup(func() { d.Shutdown(context.Background()); <-served })
	run := func(context.Context, struct{}) (any, error) { return "done", nil }
	agent, err := client.Dial(t.Context(), d.URL(), &client.Options{AgentID: "coder", Tools: []client.Tool{client.Func("ship", "", run), client.Func("sail", "", run)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := terminal.StartSession(t.Context(), &terminal.SessionOptions{
		Argv: []string{exe, "runs", "supervise", "--daemon", d.URL()}, Env: []string{"PATH", "HOME"}, Size: terminal.Size{Cols: 120, Rows: 24},
	})
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	sees(t, s, "waiting for proposals")
	if err := s.Type("y\r"); err != nil { // before anything was asked
		t.Fatal(err)
	}
	sees(t, s, "y")
	for tool, answer := range map[string]string{"ship": "n not on a Friday\r", "sail": "perhaps\ry\r"} {
		results := make(chan error, 1)
		go func() {
			_, err := agent.Submit(t.Context(), &rpcapi.Proposal{Actions: []rpcapi.Action{{Type: "tool_call", Tool: tool, Parameters: []byte(`{"to":"prod"}`)}}})
			results <- err
		}()
		sees(t, s, tool+"(to)")
		if err := s.Type(answer); err != nil {
			t.Fatal(err)
		}
		if err := <-results; (err != nil) != errors.Is(err, client.Approval) || (err != nil) != (answer[0] == 'n') {
			t.Fatalf("%q: %v", answer, err)
		}
	}
	if err := s.Type("\x04"); err != nil {
		t.Fatal(err)
	}
	ends(t, s, 0)
}
