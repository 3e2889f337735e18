package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

var clockFunctions = []*Function{
	{
		Name: "clock.now_ms", do: nowMS,
		Doc:    "Reads the wall clock.",
		Result: "Unix time in ms, an int", Example: `started = clock.now_ms()`,
	},
	{
		Name: "clock.monotonic_ms", do: monotonicMS,
		Doc:    "Reads the time that has passed since the run began.",
		Result: "ms, an int", Example: `took = clock.monotonic_ms() - before`,
	},
	{
		Name: "clock.sleep", do: sleep,
		Params:  []Param{{Name: "ms", Type: "int"}},
		Doc:     "Sleeps. On a clock that stands still this takes no time but the run's.",
		Result:  "None",
		Example: `clock.sleep(25 * 60 * 60 * 1000)`,
	},
	{
		Name: "clock.advance", do: advance,
		Params:  []Param{{Name: "ms", Type: "int"}},
		Doc:     "Lets time pass as clock.sleep does, but leaves nothing on the tape: what a test does, not its subject.",
		Result:  "None",
		Example: `clock.advance(1000)`,
	},
}

func nowMS(_ context.Context, b *testbench.Bench, _ *args) (any, error) {
	t, err := b.Clock().ReadWall()
	return t.UnixMilli(), err
}

func monotonicMS(_ context.Context, b *testbench.Bench, _ *args) (any, error) {
	d, err := b.Clock().ReadMonotonic()
	return d.Milliseconds(), err
}

func sleep(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Clock().Sleep(ctx, a.duration(0))
}

func advance(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Clock().Wait(ctx, a.duration(0))
}

// duration reads ms, not below zero.
func (a *args) duration(i int) time.Duration {
	ms := a.integer(i)
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		a.wrong(i, "ms from 0 to 292 years")
	}
	return time.Duration(ms) * time.Millisecond
}

var fileFunctions = []*Function{
	{
		Name: "fs.read", do: readFile,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Reads a file whole.",
		Result:  "a string, or bytes where the file is not UTF-8",
		Example: `notes = fs.read("notes.txt")`,
	},
	{
		Name: "fs.write", do: writeFile,
		Params:  []Param{{Name: "path", Type: "string"}, {Name: "data", Type: "string or bytes"}},
		Doc:     "Writes a file whole, and makes the directories above it. What the run sees changes; the directory below it does not.",
		Result:  "None",
		Example: `fs.write("out/report.md", "# Report\n")`,
	},
	{
		Name: "fs.delete", do: deleteFile,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Deletes a file, or a directory that is empty.",
		Result:  "None",
		Example: `fs.delete("old.txt")`,
	},
	{
		Name: "fs.list", do: listFiles,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Lists a directory.",
		Result:  "its names, sorted, a list of strings",
		Example: `for name in fs.list("."): log(name)`,
	},
	{
		Name: "fs.exists", do: fileExists,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Says whether a file or a directory stands at path.",
		Result:  "a bool",
		Example: `if not fs.exists("notes.txt"): fail("no notes")`,
	},
	{
		Name: "fs.diff", do: diff,
		Doc:     "Says what the run has changed in its files so far.",
		Result:  "a unified diff that git apply takes, a string; empty where nothing changed",
		Example: `assert_in("+done", fs.diff())`,
	},
}

// path reads the first argument, a path as people write it.
func (a *args) path() string {
	name, err := overlay.Clean(a.text(0))
	if err != nil {
		panic(badArgument{err})
	}
	return name
}

func readFile(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	content, err := b.Files().ReadFile(a.path())
	if err != nil {
		return nil, err
	}
	return Text(content), nil
}

func writeFile(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Files().WriteFile(a.path(), a.bytes(1), 0o644)
}

func deleteFile(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Files().Remove(a.path())
}

func listFiles(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	names, err := b.Files().List(a.path())
	if err != nil {
		return nil, err
	}
	list := make([]any, 0, len(names))
	for _, n := range names {
		list = append(list, n)
	}
	return list, nil
}

func fileExists(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return b.Files().Exists(a.path())
}

func diff(_ context.Context, b *testbench.Bench, _ *args) (any, error) {
	patch, err := b.Files().Diff()
	return Text(patch), err
}

var httpFunctions = []*Function{
	{
		Name: "http.get", do: httpGet,
		Params:  []Param{{Name: "url", Type: "string"}, {Name: "headers", Type: "dict of strings", Optional: true}},
		Doc:     "Sends a GET request, and follows redirects.",
		Result:  "a dict: status, an int; headers, a dict of lower-case names; body, a string (bytes where it is not UTF-8)",
		Example: `page = http.get("https://example.com/", headers = {"accept": "text/html"})`,
	},
	{
		Name: "http.post", do: httpPost,
		Params: []Param{
			{Name: "url", Type: "string"}, {Name: "body", Type: "string or bytes"},
			{Name: "headers", Type: "dict of strings", Optional: true},
		},
		Doc:     "Sends a POST request.",
		Result:  "as of http.get",
		Example: `http.post("https://example.com/hook", json.encode({"ok": True}))`,
	},
}

func httpGet(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return a.send(ctx, b, http.MethodGet, nil, 1)
}

func httpPost(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	return a.send(ctx, b, http.MethodPost, a.bytes(1), 2)
}

// maxBody is how large the body of an answer may be.
const maxBody = 64 << 20

// send sends a request to the URL that is the first argument, with the headers that the argument of that place has.
func (a *args) send(ctx context.Context, b *testbench.Bench, method string, body []byte, headers int) (any, error) {
	url := a.text(0)
	header := a.header(headers)
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.f.Name, err)
	}
	req.Header = header
	resp, err := b.Client().Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && len(content) > maxBody {
		err = fmt.Errorf("want a body of at most %d MiB", maxBody>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", a.f.Name, url, err)
	}
	return Object{{"status", int64(resp.StatusCode)}, {"headers", headerObject(resp.Header)}, {"body", Text(content)}}, nil
}

func (a *args) header(i int) http.Header {
	h := http.Header{}
	for _, m := range a.object(i) {
		value, ok := m.Value.(string)
		if !ok {
			a.wrong(i, "a dict of strings")
		}
		h.Add(m.Name, value)
	}
	return h
}

func headerObject(h http.Header) Object {
	o := Object{}
	for name, values := range h {
		o = append(o, Member{strings.ToLower(name), strings.Join(values, ", ")})
	}
	slices.SortFunc(o, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return o
}

var mcpFunctions = []*Function{
	{
		Name: "mcp.call", do: callTool,
		Params: []Param{
			{Name: "server", Type: "string"}, {Name: "tool", Type: "string"}, {Name: "arguments", Type: "dict"},
		},
		Doc:     "Calls a tool of an MCP server.",
		Result:  "the result of tools/call, a dict: content, and what else the server gave",
		Example: `found = mcp.call("search", "query", {"q": "tape"})["content"]`,
	},
}

func callTool(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	result, err := b.CallTool(ctx, a.text(0), a.text(1), a.object(2))
	if err != nil {
		return nil, err
	}
	return Decode(result)
}

var modelFunctions = []*Function{
	{
		Name: "llm.complete", do: complete,
		Params: []Param{
			{Name: "messages", Type: "list of dicts"}, {Name: "system", Type: "string or list", Optional: true},
			{Name: "tools", Type: "list of dicts", Optional: true}, {Name: "tool_choice", Type: "string or dict", Optional: true},
			{Name: "thinking", Type: "dict", Optional: true}, {Name: "model", Type: "string", Optional: true},
		},
		Doc: "Calls a model. messages are dicts with role and content. An answer that is an error (a status 529, say) fails the call.",
		Result: "a dict: text; tool_calls, a list of dicts with id, name and arguments; usage, a dict with input_tokens and output_tokens; " +
			"stop_reason, a string or None",
		Example: `answer = llm.complete([{"role": "user", "content": "What failed?"}], system = "Be brief.")`,
	},
}

func complete(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	r := &fixture.Request{
		Messages: a.values[0], System: a.values[1], Tools: a.values[2], ToolChoice: a.values[3], Thinking: a.values[4], Model: a.textOr(5),
	}
	a.list(0) // is one
	answer, err := b.Model().Complete(ctx, r)
	if err != nil {
		return nil, err
	}
	calls := make([]any, 0, len(answer.ToolCalls))
	for _, c := range answer.ToolCalls {
		arguments, err := argumentsOf(&c)
		if err != nil {
			return nil, err
		}
		calls = append(calls, Object{{"id", c.ID}, {"name", c.Name}, {"arguments", arguments}})
	}
	var reason any
	if answer.StopReason != "" {
		reason = answer.StopReason
	}
	usage := Object{{"input_tokens", answer.Usage.InputTokens}, {"output_tokens", answer.Usage.OutputTokens}}
	return Object{{"text", answer.Text}, {"tool_calls", calls}, {"usage", usage}, {"stop_reason", reason}}, nil
}

func argumentsOf(c *fixture.ToolCall) (any, error) {
	if len(c.Arguments) == 0 {
		return Object{}, nil
	}
	v, err := Decode(c.Arguments)
	if err != nil {
		return nil, fmt.Errorf("llm.complete: the arguments of the tool %s: %w", c.Name, err)
	}
	return v, nil
}

var processFunctions = []*Function{
	{
		Name: "process.run", do: runProcess,
		Params: []Param{
			{Name: "program", Type: "string"}, {Name: "args", Type: "list of strings"},
			{Name: "cwd", Type: "string", Optional: true}, {Name: "stdin", Type: "string or bytes", Optional: true},
		},
		Doc:     "Runs a command to its end. A status other than 0 is no error.",
		Result:  "a dict: stdout and stderr, strings (bytes where they are not UTF-8); exit_code and duration_ms, ints",
		Example: `status = process.run("git", ["status", "--short"])["stdout"]`,
	},
}

func runProcess(ctx context.Context, b *testbench.Bench, a *args) (any, error) {
	c := &process.Command{Program: a.text(0), Args: a.texts(1), Stdin: a.bytesOr(3)}
	if cwd := a.textOr(2); a.values[2] != nil {
		c.Cwd = &cwd
	}
	r, err := b.Processes().Run(ctx, c)
	if err != nil {
		return nil, err
	}
	return Object{
		{"stdout", Text(r.Stdout)}, {"stderr", Text(r.Stderr)},
		{"exit_code", int64(r.ExitCode)}, {"duration_ms", r.Duration.Milliseconds()},
	}, nil
}

var randomFunctions = []*Function{
	{
		Name: "random.int", do: randomInt,
		Params:  []Param{{Name: "low", Type: "int"}, {Name: "high", Type: "int"}},
		Doc:     "Draws a number from low to high, both of them possible.",
		Result:  "an int",
		Example: `port = random.int(1024, 65535)`,
	},
	{
		Name: "random.bytes", do: randomBytes,
		Params:  []Param{{Name: "n", Type: "int"}},
		Doc:     "Draws n random bytes.",
		Result:  "bytes",
		Example: `token = random.bytes(16)`,
	},
}

var envFunctions = []*Function{
	{
		Name: "env.get", do: getenv,
		Params:  []Param{{Name: "name", Type: "string"}, {Name: "default", Type: "string", Optional: true}},
		Doc:     "Reads a variable of the run's environment, which holds what --env and Config.Env give and nothing else.",
		Result:  "a string, or default where it is not set",
		Example: `mode = env.get("MODE", "daily")`,
	},
}

func randomInt(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return b.Random().Int(a.integer(0), a.integer(1))
}

func randomBytes(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	n := a.integer(0)
	if n < 0 || n > testbench.MaxRandom {
		a.wrong(0, "from 0 to 16777216")
	}
	return b.Random().Bytes(int(n))
}

func getenv(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	value, ok, err := b.LookupEnv(a.text(0))
	if err != nil || ok {
		return value, err
	}
	return a.values[1], nil
}
