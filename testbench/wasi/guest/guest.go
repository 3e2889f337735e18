package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Call calls a function of the host by its name ("llm.complete") with arguments, which become a JSON object with the parameters' names, and
// puts the answer into what answer points at; nil leaves it. The error is the host's.
func Call(name string, arguments, answer any) error {
	if arguments == nil {
		arguments = struct{}{}
	}
	in, err := json.Marshal(arguments)
	if err != nil {
		return fmt.Errorf("%s: arguments: %w", name, err)
	}
	out, failed := call(name, in)
	if failed {
		return errors.New(string(out))
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("%s: answer: %w", name, err)
	}
	return nil
}

// Bytes are text or not: in JSON a string where they are UTF-8, else {"base64":"…"}.
type Bytes []byte

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(map[string][]byte{"base64": b})
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		var other struct {
			Base64 []byte `json:"base64"`
		}
		err := json.Unmarshal(text, &other)
		*b = other.Base64
		return err
	}
	var s string
	err := json.Unmarshal(text, &s)
	*b = Bytes(s)
	return err
}

// A Message is one of a talk with a model. Content is a string, or a list of parts.
type Message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// A Request is a call of a model. Messages is a []Message, or any other list of JSON objects; what is nil or "" is left out.
type Request struct {
	Messages   any    `json:"messages"`
	System     any    `json:"system,omitempty"`
	Tools      any    `json:"tools,omitempty"`
	ToolChoice any    `json:"tool_choice,omitempty"`
	Thinking   any    `json:"thinking,omitempty"`
	Model      string `json:"model,omitempty"`
}

// A Response is what a model answered.
type Response struct {
	Text       string     `json:"text"`
	ToolCalls  []ToolCall `json:"tool_calls"`
	Usage      Usage      `json:"usage"`
	StopReason string     `json:"stop_reason"`
}

// A ToolCall is what a model wants done.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Usage counts tokens.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
}

// Complete calls a model.
func Complete(r *Request) (*Response, error) {
	var answer Response
	if err := Call("llm.complete", r, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

// A Command is a program that is to run. Cwd is within the run's files, "" their top.
type Command struct {
	Program string   `json:"program"`
	Args    []string `json:"args"`
	Cwd     string   `json:"cwd,omitempty"`
	Stdin   Bytes    `json:"stdin,omitempty"`
}

// A Result is what became of a Command.
type Result struct {
	Stdout     Bytes `json:"stdout"`
	Stderr     Bytes `json:"stderr"`
	ExitCode   int   `json:"exit_code"`
	DurationMS int64 `json:"duration_ms"`
}

// Run runs a command. A status other than 0 is no error.
func Run(c *Command) (*Result, error) {
	with := *c
	if with.Args == nil {
		with.Args = []string{}
	}
	var answer Result
	if err := Call("process.run", &with, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

// CallTool calls a tool of an MCP server. arguments become a JSON object. The answer is the result of tools/call.
func CallTool(server, tool string, arguments any) (json.RawMessage, error) {
	if arguments == nil {
		arguments = struct{}{}
	}
	var answer json.RawMessage
	err := Call("mcp.call", struct {
		Server    string `json:"server"`
		Tool      string `json:"tool"`
		Arguments any    `json:"arguments"`
	}{server, tool, arguments}, &answer)
	return answer, err
}

// A Page is the answer to an HTTP request. The names of Headers are in lower case.
type Page struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    Bytes             `json:"body"`
}

// Get sends a GET request. headers may be nil.
func Get(url string, headers map[string]string) (*Page, error) {
	var answer Page
	err := Call("http.get", struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}{url, headers}, &answer)
	return &answer, err
}

// Post sends a POST request. headers may be nil.
func Post(url string, body []byte, headers map[string]string) (*Page, error) {
	var answer Page
	err := Call("http.post", struct {
		URL     string            `json:"url"`
		Body    Bytes             `json:"body"`
		Headers map[string]string `json:"headers,omitempty"`
	}{url, body, headers}, &answer)
	return &answer, err
}

// RandomInt draws a number from low to high, both of them possible.
func RandomInt(low, high int64) (n int64, err error) {
	err = Call("random.int", map[string]int64{"low": low, "high": high}, &n)
	return n, err
}

// Diff returns what the run has changed in its files so far, as a patch that git apply takes.
func Diff() (string, error) {
	var patch Bytes
	err := Call("fs.diff", nil, &patch)
	return string(patch), err
}

// Advance lets ms pass and leaves nothing on the tape.
func Advance(ms int64) error { return Call("clock.advance", map[string]int64{"ms": ms}, nil) }

// Log prints values on standard error, in a line, as a script's log does.
func Log(values ...any) error {
	if values == nil {
		values = []any{}
	}
	return Call("log", map[string]any{"values": values}, nil)
}
