package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/proposal"
	"github.com/tapedeck-dev/tapedeck/proposal/toolschema"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// The tools that the daemon itself runs, where they are turned on.
const (
	driveCLI     = "drive_cli"
	checkOutcome = "check_outcome"
)

const (
	// builtinOutput bounds each of a command's two outputs, in bytes; what is beyond is read and dropped.
	builtinOutput = 256 << 10
	// builtinTimeout holds for a command whose parameters name no timeout_ms.
	builtinTimeout = 10 * time.Minute
)

// builtin runs commands of a fixed list, without a shell. Its programs are looked up once, when the daemon opens.
type builtin struct {
	name     string
	programs map[string]string // as a caller names it: the path that is started
}

// commandParams are the parameters of both tools. The first element of command is the program; of the others each that is
// exactly {prompt} becomes the prompt. Without one the prompt is the command's standard input.
type commandParams struct {
	Prompt    string          `json:"prompt"`
	Command   json.RawMessage `json:"command"` // a program, or a list of it and its arguments
	Args      []string        `json:"args"`
	Cwd       string          `json:"cwd"`
	TimeoutMS int64           `json:"timeout_ms"`
}

// commandOutput is what both give; check_outcome has passed beside it.
type commandOutput struct {
	ExitCode  *int    `json:"exit_code,omitempty"` // absent when it timed out; 128 and the signal's number when one ended it
	TimedOut  bool    `json:"timed_out"`
	Stdout    string  `json:"stdout"`
	Stderr    string  `json:"stderr"`
	Truncated bool    `json:"truncated,omitempty"` // an output was longer than 256 KiB
	Duration  float64 `json:"duration_ms"`
	Passed    *bool   `json:"passed,omitempty"`
}

func newBuiltins(list []Builtin, noAuth bool) (map[string]*tool, error) {
	if len(list) > 0 && noAuth {
		return nil, errors.New("built-in tools start programs, so they are refused together with no-auth: leave one of them out")
	}
	all := make(map[string]*tool, len(list))
	for _, b := range list {
		one, err := newBuiltin(b)
		if err != nil {
			return nil, fmt.Errorf("built-in tool %q: %w", b.Name, err)
		}
		if all[b.Name], err = one.tool(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// tool is what sessions call.
func (b *builtin) tool() (*tool, error) {
	info := b.info()
	schema, err := toolschema.Compile(b.name, info.Parameters)
	return &tool{Tool: &proposal.Tool{
		Definition: proposal.Definition{Name: b.name, Description: info.Description, Parameters: info.Parameters},
		Call:       func(ctx context.Context, c *proposal.Call) (json.RawMessage, error) { return b.call(ctx, c.Parameters) },
		Schema:     schema,
	}, info: info}, err
}

func newBuiltin(b Builtin) (*builtin, error) {
	if b.Name != driveCLI && b.Name != checkOutcome {
		return nil, fmt.Errorf("no such tool; there are %s and %s", driveCLI, checkOutcome)
	}
	if len(b.Commands) == 0 {
		return nil, errors.New("no command is allowed; name at least one")
	}
	programs := make(map[string]string, len(b.Commands))
	for _, name := range b.Commands {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("allowed command %q: %w", name, err)
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		programs[name] = path
	}
	return &builtin{name: b.Name, programs: programs}, nil
}

// info is the tool as tools.list has it.
func (b *builtin) info() rpcapi.ToolInfo {
	return rpcapi.ToolInfo{
		Name: b.name, Source: rpcapi.SourceBuiltin,
		Description: "runs one of: " + strings.Join(b.allowed(), ", "),
		Parameters:  json.RawMessage(builtinSchema),
	}
}

const builtinSchema = `{"type":"object","required":["command"],"properties":{` +
	`"command":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1}]},` +
	`"args":{"type":"array","items":{"type":"string"}},"prompt":{"type":"string"},` +
	`"cwd":{"type":"string"},"timeout_ms":{"type":"integer","minimum":1}}}`

func (b *builtin) allowed() []string {
	names := make([]string, 0, len(b.programs))
	for name := range b.programs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// call runs the command that params ask for. Its end, with whatever status, is an output; an error is a command that could
// not run.
func (b *builtin) call(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p commandParams
	if err := unmarshal(params, &p); err != nil {
		return nil, fmt.Errorf("parameters of %s: %w", b.name, err)
	}
	argv, err := p.argv()
	if err != nil {
		return nil, err
	}
	path, ok := b.programs[argv[0]]
	if !ok {
		return nil, fmt.Errorf("command %q is not allowed; allowed are %s", argv[0], strings.Join(b.allowed(), ", "))
	}
	out, err := p.run(ctx, path, argv)
	if err != nil {
		return nil, err
	}
	if b.name == checkOutcome {
		passed := out.ExitCode != nil && *out.ExitCode == 0
		out.Passed = &passed
	}
	return json.Marshal(out)
}

func (p *commandParams) argv() ([]string, error) {
	var argv []string
	var program string
	if json.Unmarshal(p.Command, &program) == nil && program != "" {
		argv = []string{program}
	} else if err := json.Unmarshal(p.Command, &argv); err != nil || len(argv) == 0 {
		return nil, errors.New("command: want a program or a list of it and its arguments")
	}
	return append(argv, p.Args...), nil
}

func (p *commandParams) run(ctx context.Context, path string, argv []string) (*commandOutput, error) {
	timeout := builtinTimeout
	if p.TimeoutMS > 0 && p.TimeoutMS < int64(builtinTimeout/time.Millisecond) {
		timeout = time.Duration(p.TimeoutMS) * time.Millisecond
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, path)
	stdin := p.Prompt
	for _, arg := range argv[1:] {
		if arg == "{prompt}" {
			arg, stdin = p.Prompt, ""
		}
		cmd.Args = append(cmd.Args, arg)
	}
	cmd.Args[0], cmd.Dir, cmd.Stdin = argv[0], p.Cwd, strings.NewReader(stdin)
	cmd.Env = slices.DeleteFunc(os.Environ(), ofTheDaemon)
	var stdout, stderr boundedBuffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	procgroup.Own(cmd, -1)
	cmd.Cancel = func() error { return procgroup.Kill(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second // for a child that outlived it and holds the pipes
	begin := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return nil, fmt.Errorf("could not start %q: %w", argv[0], err)
	}
	_ = procgroup.Kill(cmd.Process.Pid) // what it left running
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out := &commandOutput{
		TimedOut: limited.Err() != nil, Stdout: stdout.text(), Stderr: stderr.text(),
		Truncated: stdout.cut || stderr.cut, Duration: float64(time.Since(begin).Microseconds()) / 1000,
	}
	if !out.TimedOut {
		exit := procgroup.ExitOf(cmd.ProcessState)
		if exit.Signal != 0 {
			exit.Code = 128 + int(exit.Signal)
		}
		out.ExitCode = &exit.Code
	}
	return out, nil
}

// ofTheDaemon says whether a variable concerns the daemon's own process alone.
func ofTheDaemon(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	switch name {
	case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "CAR_AUTH_TOKEN":
		return true
	}
	return false
}

// boundedBuffer keeps the first builtinOutput bytes. One goroutine of os/exec writes it; text is for after its end.
type boundedBuffer struct {
	b   bytes.Buffer
	cut bool
}

func (w *boundedBuffer) Write(p []byte) (int, error) {
	if room := builtinOutput - w.b.Len(); len(p) > room {
		w.cut = true
		w.b.Write(p[:room])
		return len(p), nil
	}
	return w.b.Write(p)
}

func (w *boundedBuffer) text() string { return strings.ToValidUTF8(w.b.String(), "\uFFFD") }
