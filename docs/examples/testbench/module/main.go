//go:build wasip1

// Module is agent.star as a WASI module in Go. Files, the clock and sleeping are those of Go's library; a model and commands come
// through package guest.
//
//	GOOS=wasip1 GOARCH=wasm go build -o agent.wasm ./module
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench/wasi/guest"
)

const system = "You keep NOTES.md of a repository. Use the tools."

var tools = json.RawMessage(`[
	{"name": "git", "description": "run git with these arguments", "input_schema": {"type": "object"}},
	{"name": "write_file", "description": "write a file", "input_schema": {"type": "object"}}
]`)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	for i, question := range []string{"What changed? Write it to NOTES.md.", "A day has passed. Anything new?"} {
		if i > 0 {
			time.Sleep(24 * time.Hour)
		}
		answer, err := ask(question)
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	fmt.Println(time.Now().UnixMilli())
	return nil
}

// ask asks the model, and does what it wants done, until it has an answer.
func ask(question string) (string, error) {
	messages := []any{guest.Message{Role: "user", Content: question}}
	for range 8 {
		answer, err := guest.Complete(&guest.Request{Messages: messages, System: system, Tools: tools, Model: "claude-sonnet-4-5"})
		if err != nil {
			return "", err
		}
		if len(answer.ToolCalls) == 0 {
			return answer.Text, nil
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": answer.Text, "tool_calls": answer.ToolCalls})
		for _, call := range answer.ToolCalls {
			result, err := use(call)
			if err != nil {
				return "", err
			}
			messages = append(messages, map[string]any{"role": "tool", "tool_call_id": call.ID, "content": result})
		}
	}
	return "", errors.New("no answer after 8 turns")
}

// use does what the model wants done.
func use(call guest.ToolCall) (string, error) {
	var args struct {
		Args          []string
		Path, Content string
	}
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return "", fmt.Errorf("arguments of %s: %w", call.Name, err)
	}
	switch call.Name {
	case "git":
		result, err := guest.Run(&guest.Command{Program: "git", Args: args.Args})
		if err != nil {
			return "", err
		}
		return string(result.Stdout), nil
	case "write_file":
		return "written", os.WriteFile(args.Path, []byte(args.Content), 0o644)
	}
	return "there is no tool " + call.Name, nil
}
