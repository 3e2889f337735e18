// Package agent is agent.star in Go: an agent that writes down what changed in a repository, and looks again a day later. All
// that it asks of the world it asks of a testbench.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

const system = "You keep NOTES.md of a repository. Use the tools."

var tools = []any{
	map[string]any{"name": "git", "description": "run git with these arguments", "input_schema": map[string]any{"type": "object"}},
	map[string]any{"name": "write_file", "description": "write a file", "input_schema": map[string]any{"type": "object"}},
}

// Run is the whole day of the agent. It returns what the model said, and the time at the end, Unix epoch ms.
func Run(ctx context.Context, b *testbench.Bench) (said []string, atMS int64, err error) {
	for i, question := range []string{"What changed? Write it to NOTES.md.", "A day has passed. Anything new?"} {
		if i > 0 {
			if err := b.Clock().Sleep(ctx, 24*time.Hour); err != nil {
				return nil, 0, err
			}
		}
		answer, err := ask(ctx, b, question)
		if err != nil {
			return nil, 0, err
		}
		said = append(said, answer)
	}
	return said, b.Clock().Now().UnixMilli(), nil
}

// ask asks the model, and does what it wants done, until it has an answer.
func ask(ctx context.Context, b *testbench.Bench, question string) (string, error) {
	messages := []any{map[string]any{"role": "user", "content": question}}
	for range 8 {
		answer, err := b.Model().Complete(ctx, &fixture.Request{Messages: messages, System: system, Tools: tools, Model: "claude-sonnet-4-5"})
		if err != nil {
			return "", err
		}
		if len(answer.ToolCalls) == 0 {
			return answer.Text, nil
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": answer.Text, "tool_calls": answer.ToolCalls})
		for _, call := range answer.ToolCalls {
			result, err := use(ctx, b, call)
			if err != nil {
				return "", err
			}
			messages = append(messages, map[string]any{"role": "tool", "tool_call_id": call.ID, "content": result})
		}
	}
	return "", errors.New("no answer after 8 turns")
}

// use does what the model wants done.
func use(ctx context.Context, b *testbench.Bench, call fixture.ToolCall) (string, error) {
	var args struct {
		Args          []string
		Path, Content string
	}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return "", fmt.Errorf("arguments of %s: %w", call.Name, err)
	}
	switch call.Name {
	case "git":
		out, err := b.Processes().Command(ctx, "git", args.Args...).Output()
		return string(out), err
	case "write_file":
		return "written", b.Files().WriteFile(args.Path, []byte(args.Content), 0o644)
	}
	return "there is no tool " + call.Name, nil
}
