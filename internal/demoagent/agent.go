// Package demoagent is a small agent: a model, two tools, a loop. The quickstart records it, and it stands here as an
// agent looks from outside: it speaks to api.anthropic.com over TLS through net/http's defaults, streams, retries as
// the provider's SDKs do, and knows nothing of being recorded.
//
// Its tools read and write files in its directory, and nowhere else. It keeps no history between runs.
package demoagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

const (
	defaultBaseURL = "https://api.anthropic.com"
	defaultModel   = "claude-sonnet-4-5"
	maxTurns       = 16
	system         = "You are a small coding agent. Use the tools to do what the user asks, then say in one sentence what you did."
)

// errTurns means that the model still called tools after maxTurns answers.
var errTurns = errors.New("the model did not come to an answer")

// Options are what one run of the agent needs.
type Options struct {
	Prompt string // what the user asks; required
	APIKey string // of the provider
	// BaseURL is the provider's address without a path; "" is https://api.anthropic.com.
	BaseURL string
	// Model is the model's name; "" is claude-sonnet-4-5.
	Model string
	// Dir is the directory that the tools are confined to; "" is the working directory.
	Dir string
	// Stdout gets the model's text as it streams and the tool calls, Stderr what went wrong. nil drops them.
	Stdout, Stderr io.Writer
	// Client sends the requests; nil is http.DefaultClient.
	Client *http.Client
}

// Run asks the model, runs the tools that it calls, and goes on until it answers without a call. It returns the exit
// status: 0 for an answer, 1 for anything else, which Stderr then has said.
func Run(ctx context.Context, opts *Options) int {
	a, err := newAgent(opts)
	if err == nil {
		defer a.root.Close()
		err = a.run(ctx, opts.Prompt)
	}
	if err != nil {
		fmt.Fprintf(writer(opts.Stderr), "error: %v\n", err)
		return 1
	}
	return 0
}

// An agent is one run.
type agent struct {
	client         *client
	root           *os.Root
	model          string
	stdout, stderr io.Writer
	messages       []message
}

func newAgent(opts *Options) (*agent, error) {
	if opts.Prompt == "" {
		return nil, errors.New("no prompt")
	}
	root, err := os.OpenRoot(cmp.Or(opts.Dir, "."))
	if err != nil {
		return nil, err
	}
	return &agent{
		client: &client{
			http: cmp.Or(opts.Client, http.DefaultClient), base: cmp.Or(opts.BaseURL, defaultBaseURL), key: opts.APIKey,
		},
		root: root, model: cmp.Or(opts.Model, defaultModel),
		stdout: writer(opts.Stdout), stderr: writer(opts.Stderr),
	}, nil
}

func writer(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

func (a *agent) run(ctx context.Context, prompt string) error {
	a.messages = []message{{Role: "user", Content: []block{{Type: "text", Text: prompt}}}}
	for range maxTurns {
		answer, err := a.turn(ctx)
		if err != nil {
			return err
		}
		results := a.runTools(answer)
		if len(results) == 0 {
			return nil
		}
		a.messages = append(a.messages,
			message{Role: "assistant", Content: answer}, message{Role: "user", Content: results})
	}
	return errTurns
}

// turn asks the model for its next answer and prints its text while it comes.
func (a *agent) turn(ctx context.Context) ([]block, error) {
	body, err := a.client.send(ctx, &request{
		Model: a.model, MaxTokens: 1024, System: system, Tools: declarations, Messages: a.messages, Stream: true,
	})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readAnswer(body, a.stdout)
}

// runTools runs every tool that an answer calls, in order. A tool that fails is a result too: the model is told.
func (a *agent) runTools(answer []block) []block {
	var results []block
	for _, b := range answer {
		if b.Type != "tool_use" {
			continue
		}
		fmt.Fprintf(a.stdout, "tool: %s %s\n", b.Name, b.Input)
		out, err := call(a.root, b.Name, b.Input)
		if err != nil {
			out = err.Error()
		}
		results = append(results, block{Type: "tool_result", ToolUseID: b.ID, Content: out, IsError: err != nil})
	}
	return results
}

// A declaration tells the model of a tool.
type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

var declarations = []declaration{
	{
		Name: "write_file", Description: "Write a file, creating it and its folders where they are missing.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path relative to the working directory"},` +
			`"content":{"type":"string","description":"The whole content of the file"}},"required":["path","content"]}`),
	},
	{
		Name: "read_file", Description: "Read a file.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path relative to the working directory"}},"required":["path"]}`),
	},
}

// arguments are those of both tools.
type arguments struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// call runs a tool; root keeps every path below the agent's directory, links included.
func call(root *os.Root, name string, input json.RawMessage) (string, error) {
	var args arguments
	if err := json.Unmarshal(input, &args); err != nil {
		return "", fmt.Errorf("arguments of %s: %w", name, err)
	}
	switch name {
	case "write_file":
		return writeFile(root, &args)
	case "read_file":
		b, err := root.ReadFile(args.Path)
		return string(b), err
	}
	return "", fmt.Errorf("there is no tool %q", name)
}

func writeFile(root *os.Root, args *arguments) (string, error) {
	if err := root.MkdirAll(filepath.Dir(args.Path), 0o755); err != nil {
		return "", err
	}
	if err := root.WriteFile(args.Path, []byte(args.Content), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(args.Content), args.Path), nil
}
