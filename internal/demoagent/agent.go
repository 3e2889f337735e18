// Package demoagent is a small agent: a model, two tools, a loop. The quickstart records it, and it stands here as an
// agent looks from outside: it speaks to api.anthropic.com over TLS through net/http's defaults, streams, retries as
// the provider's SDKs do, and knows nothing of being recorded.
//
// Its tools read and write files in its directory, and nowhere else. It keeps no history between runs.
package demoagent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
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
	client   *client
	root     *os.Root
	model    string
	stdout   io.Writer
	messages []message
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
		root: root, model: cmp.Or(opts.Model, defaultModel), stdout: writer(opts.Stdout),
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

const (
	maxRetries   = 2
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 8 * time.Second
	maxErrorBody = 1 << 20 // bytes
)

// A client sends requests to the provider and retries as its SDKs do.
type client struct {
	http *http.Client
	base string
	key  string
}

// send returns the body of a successful answer; the caller closes it. A refusal is an *apiError.
func (c *client) send(ctx context.Context, q *request) (io.ReadCloser, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		resp, err := c.post(ctx, body)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp.Body, nil
		}
		var header http.Header
		again := true // a connection that failed
		if err == nil {
			header, again = resp.Header, retryable(resp)
			err = refusal(resp)
		}
		if !again || attempt == maxRetries || ctx.Err() != nil {
			return nil, err
		}
		if err := sleep(ctx, backoff(attempt, header)); err != nil {
			return nil, err
		}
	}
}

func (c *client) post(ctx context.Context, body []byte) (*http.Response, error) {
	url := strings.TrimSuffix(c.base, "/") + "/v1/messages"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("User-Agent", "demoagent/1")
	r.Header.Set("X-Api-Key", c.key)
	return c.http.Do(r)
}

// refusal reads and closes the body of an answer that is no success.
func refusal(resp *http.Response) error {
	defer resp.Body.Close()
	out := &apiError{Status: resp.StatusCode, Kind: "error", Message: http.StatusText(resp.StatusCode)}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var e errorBody
	if err == nil && json.Unmarshal(raw, &e) == nil && e.Error.Message != "" {
		out.Kind, out.Message = e.Error.Type, e.Error.Message
	}
	return out
}

// retryable follows the provider's SDKs: the server's own word first, then the status.
func retryable(resp *http.Response) bool {
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return resp.StatusCode >= 500
}

// backoff is what the server asks for, up to a minute, else it doubles with every attempt, less up to a quarter.
func backoff(attempt int, h http.Header) time.Duration {
	for name, unit := range map[string]time.Duration{"Retry-After-Ms": time.Millisecond, "Retry-After": time.Second} {
		if n, err := strconv.Atoi(h.Get(name)); err == nil && n >= 0 && time.Duration(n)*unit <= time.Minute {
			return time.Duration(n) * unit
		}
	}
	d := min(firstBackoff<<attempt, maxBackoff)
	return d - rand.N(d/4)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const maxLine = 4 << 20 // bytes of one line of a stream

// errCutOff means that a stream ended before its message did.
var errCutOff = errors.New("the answer ended in the middle")

// An event is one event of a stream; which fields are set depends on Type.
type event struct {
	Type         string `json:"type"`
	ContentBlock block  `json:"content_block"`
	Delta        struct {
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
	} `json:"delta"`
	errorBody
}

// An answer collects the blocks of a message while they stream.
type answer struct {
	blocks []block
	input  strings.Builder // of the tool_use block that is open
	text   io.Writer
	done   bool
}

// readAnswer reads one streamed message, copies its text to w as it comes, and returns its blocks.
func readAnswer(r io.Reader, w io.Writer) ([]block, error) {
	a := &answer{text: w}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() { // to the end, also after the message: the connection is reused then
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue // the event's name, which the data repeats, or an empty line
		}
		var ev event
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			return nil, fmt.Errorf("event of the answer: %w", err)
		}
		if err := a.take(&ev); err != nil {
			return nil, err
		}
	}
	if a.done {
		return a.blocks, nil
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errCutOff, err)
	}
	return nil, errCutOff
}

func (a *answer) take(ev *event) error {
	switch ev.Type {
	case "content_block_start":
		a.blocks = append(a.blocks, ev.ContentBlock)
		a.input.Reset()
	case "content_block_delta":
		return a.delta(ev)
	case "content_block_stop":
		return a.closeBlock()
	case "message_stop":
		a.done = true
	case "error":
		return &apiError{Kind: ev.Error.Type, Message: ev.Error.Message}
	}
	return nil
}

func (a *answer) delta(ev *event) error {
	if len(a.blocks) == 0 {
		return errors.New("a delta before its block")
	}
	a.blocks[len(a.blocks)-1].Text += ev.Delta.Text
	a.input.WriteString(ev.Delta.PartialJSON)
	_, err := io.WriteString(a.text, ev.Delta.Text)
	return err
}

// closeBlock ends a text with a line's end and gives a call its input.
func (a *answer) closeBlock() error {
	if len(a.blocks) == 0 {
		return errors.New("the end of a block before its start")
	}
	last := &a.blocks[len(a.blocks)-1]
	if last.Type != "tool_use" {
		_, err := io.WriteString(a.text, "\n")
		return err
	}
	input := cmp.Or(a.input.String(), "{}")
	if !json.Valid([]byte(input)) {
		return fmt.Errorf("the input of tool %s is not JSON", last.Name)
	}
	last.Input = json.RawMessage(input)
	return nil
}

// The parts of the messages API that the agent speaks: https://docs.anthropic.com/en/api/messages.

type request struct {
	Model     string        `json:"model"`
	MaxTokens int           `json:"max_tokens"`
	System    string        `json:"system"`
	Tools     []declaration `json:"tools"`
	Messages  []message     `json:"messages"`
	Stream    bool          `json:"stream"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`        // text
	ID        string          `json:"id,omitempty"`          // tool_use
	Name      string          `json:"name,omitempty"`        // tool_use
	Input     json.RawMessage `json:"input,omitempty"`       // tool_use
	ToolUseID string          `json:"tool_use_id,omitempty"` // tool_result
	Content   string          `json:"content,omitempty"`     // tool_result
	IsError   bool            `json:"is_error,omitempty"`    // tool_result
}

// An apiError is the provider's refusal.
type apiError struct {
	Status  int // 0: it came in the stream
	Kind    string
	Message string
}

func (e *apiError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %s", e.Kind, e.Message)
	}
	return fmt.Sprintf("status %d, %s: %s", e.Status, e.Kind, e.Message)
}

// errorBody is the shape of an error in an answer and in a stream.
type errorBody struct {
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}
