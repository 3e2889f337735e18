package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

type scriptRunOptions struct {
	in     suite.Inputs
	limits limitFlags
	match  string
	update bool
}

func newScriptRunCommand(std *console) *cobra.Command {
	var o scriptRunOptions
	cmd := command("script run", "FILE…", func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		dash := cmd.ArgsLenAtDash()
		if dash < 0 {
			dash = len(args)
		}
		if dash == 0 {
			return errors.New("script run takes a FILE before --: none is there")
		}
		return jsonWhatever(std, func() error {
			return runScriptRun(ctx, &o, args[:dash], args[dash:], std)
		})
	})
	cmd.SuggestFor = []string{"test"}
	f := cmd.Flags()
	o.define(f)
	o.limits.define(f)
	f.StringVar(&o.match, "run", "", "run the tests alone whose FILE:FUNCTION matches this `regexp`")
	f.BoolVar(&o.update, "update", false, "write the golden tape of every test that passes")
	std.jsonFlag(cmd, "the result, or the summary of the tests, as JSON")
	completeFlag(cmd, "clock", "paused", "paused=", "real")
	_ = cmd.MarkFlagDirname("files") // the flag is there
	return cmd
}

// define defines the flags that say where inputs come from.
func (o *scriptRunOptions) define(f *pflag.FlagSet) {
	in := &o.in
	f.StringVar(&in.Clock, "clock", "paused", "`CLOCK`: real, paused (at 2026-01-01T00:00:00Z) or paused=TIME (RFC 3339 or Unix ms)")
	f.Uint64Var(&in.Seed, "seed", 0, "of random numbers")
	f.StringVar(&in.LLM, "llm", "", "who answers calls of a model: `FIXTURE.jsonl`, record=OUT.jsonl or live")
	f.StringVar(&in.Files, "files", "", "the files of `DIR`, which is only read: what the script changes is kept apart")
	f.StringVar(&in.Diff, "diff", "", "write what the script changed to `OUT.patch`, for git apply")
	f.BoolVar(&in.WriteBack, "write-back", false, "write what the script changed into the directory of --files")
	f.StringVar(&in.Processes, "processes", "", "what answers commands: a process `TAPE`, record=OUT or live")
	f.StringVar(&in.MCP, "mcp", "", "the recording or tape that answers tool servers' calls (`REC`)")
	f.StringVar(&in.Net, "net", "deny", "`NET`: deny, a recording or tape that answers, or allow=HOST,…")
	f.StringArrayVar(&in.Env, "env", nil, "`NAME=VALUE` for env.get, which sees nothing else (again for more)")
	f.StringVar(&in.Emit, "emit-tape", "", "write the run's tape to `TAPE`, over what is there")
}

// limitFlags are the limits of a script.
type limitFlags struct{ script.Options }

func (o *limitFlags) define(f *pflag.FlagSet) {
	f.Uint64Var(&o.Steps, "steps", script.DefaultSteps, "steps of the interpreter that a script may take")
	parsedFlag(f, &o.Memory, "memory", "512M", "`BYTES` that it may need, as in 64M or 2G", parseSize)
	f.DurationVar(&o.Timeout, "timeout", script.DefaultTimeout, "how long it may take, by the clock on the wall")
}

// check refuses nothing at all, which would read as the default.
func (o *limitFlags) check() error {
	switch {
	case o.Steps == 0:
		return errors.New("--steps 0: want at least 1")
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %v: want more than nothing, as in 30s", o.Timeout)
	}
	return nil
}

func runScriptRun(ctx context.Context, o *scriptRunOptions, paths, args []string, std *console) error {
	if err := o.limits.check(); err != nil {
		return err
	}
	in := o.in
	for _, name := range []*string{&in.MCP, &in.Net} {
		clean, err := resolveTape(ctx, name, std.progress())
		if err != nil {
			return err
		}
		defer clean()
	}
	conf, err := in.Config()
	if err != nil {
		return err
	}
	tests, err := suite.HoldTests(paths)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(paths) > 1:
		return fmt.Errorf("%w (arguments of a program stand behind --)", err)
	case err != nil:
		return err
	case tests:
		return runScriptTests(ctx, o, conf, paths, args, std)
	case o.update || o.match != "":
		return fmt.Errorf("--update and --run are for tests: %s holds none", paths[0])
	}
	conf.Name, conf.Args = paths[0], args
	return runScriptFile(ctx, conf, o.limits.Options, std)
}

// resolveTape has a flag that may name a recording by its id name its path.
func resolveTape(ctx context.Context, name *string, p *progress) (clean func(), err error) {
	if !suite.NamesTape(*name) {
		return func() {}, nil
	}
	path, clean, err := anyTape(ctx, *name, p)
	if err == nil {
		*name = path
	}
	return clean, err
}

func runScriptFile(ctx context.Context, conf *testbench.Config, limits script.Options, std *console) error {
	b, err := testbench.Open(conf)
	if err != nil {
		return suite.Flagged(err)
	}
	program := suite.Program{Path: conf.Name, Limits: limits, In: std.in, Out: std.out, Err: std.err}
	if std.json {
		program.Out = nil
		if program.IsModule() {
			program.Out = std.err
		}
	}
	out, err := program.Run(ctx, b)
	if err != nil {
		if conf.Files.WriteBack && b.Failed() {
			std.say("nothing was written into %s: the run failed", shortPath(conf.Files.Dir))
		}
		return scriptError(ctx, err)
	}
	for _, what := range b.Unused() {
		std.say("never asked for: %s", what)
	}
	if conf.Emit != "" {
		std.say("tape: %s (%s)", shortPath(conf.Emit), plural(b.Recorder().Count(), "record", "records"))
	}
	if std.json {
		return printJSON(std.out, scriptResult{Status: suite.Passed, Result: out.Result, Steps: out.Steps, Assertions: out.Assertions, Tape: conf.Emit, Unused: nonNil(b.Unused())})
	}
	return nil
}

// scriptError is what ended a script, with the status that it gives.
func scriptError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case suite.StatusOf(err) == suite.Failed:
		return &statusError{statusDiverged, &programError{err}}
	}
	return &programError{err}
}

// What script run prints with --json: of one script, and of tests.
type (
	scriptResult struct {
		Status     suite.Status    `json:"status"` // passed; of one that fails a scriptFailure is printed
		Result     json.RawMessage `json:"result"`
		Steps      uint64          `json:"steps"`
		Assertions int             `json:"assertions"`
		Tape       string          `json:"tape"`
		Unused     []string        `json:"unused"`
	}
	scriptSummary struct {
		Passed  int              `json:"passed"`
		Failed  int              `json:"failed"`
		Broken  int              `json:"broken"`
		Written int              `json:"written"`
		Tests   []scriptTestLine `json:"tests"`
		Notes   []string         `json:"notes"`
	}
	scriptTestLine struct {
		Name    string       `json:"name"`
		Status  suite.Status `json:"status"`
		MS      float64      `json:"ms"`
		Golden  string       `json:"golden"`
		Written bool         `json:"written"`
		Error   string       `json:"error"`
		Output  string       `json:"output"`
	}
)

func runScriptTests(ctx context.Context, o *scriptRunOptions, conf *testbench.Config, paths, args []string, std *console) error {
	opts := &suite.Options{Config: conf, Script: o.limits.Options, Update: o.update}
	var err error
	if opts.Match, err = regexp.Compile(o.match); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if err := o.in.ForTests(args); err != nil {
		return err
	}
	files, err := suite.Find(paths...)
	if err != nil {
		return err
	}
	if !std.json {
		opts.Report = func(r *suite.Result) { printTest(std, r) }
	}
	begun := time.Now()
	s, err := suite.Run(ctx, files, opts)
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if left := printTests(s, time.Since(begun), std); err == nil {
		err = left
	}
	if err == nil && len(s.Results) == 0 {
		err = fmt.Errorf("--run %s: no test matches", o.match)
	}
	if err != nil {
		return err
	}
	switch {
	case s.Count(suite.Broken) > 0:
		return &statusError{status: statusFailed}
	case s.Count(suite.Failed) > 0:
		return &statusError{status: statusDiverged}
	}
	return nil
}

// printTest prints a test's line, and of one that did not pass what it logged and why.
func printTest(std *console, r *suite.Result) {
	word := map[suite.Status]string{suite.Passed: "ok    ", suite.Failed: "FAILED", suite.Broken: "BROKEN"}[r.Status]
	written := ""
	if r.Written {
		written = "  wrote " + shortPath(r.Golden)
	}
	visible.Fprintf(std.out, "%s %s  %s%s\n", word, r.Name(), testTime(r.Took), written)
	if r.Err == nil {
		return
	}
	for line := range strings.Lines(r.Output + suite.Detail(r.Err)) {
		visible.Fprintf(std.out, "       %s\n", strings.TrimRight(line, "\n"))
	}
}

func testTime(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func printTests(s *suite.Summary, d time.Duration, std *console) error {
	if std.json {
		return printJSON(std.out, summaryOf(s))
	}
	for _, n := range s.Notes {
		std.say("%s", n)
	}
	if len(s.Results) == 0 {
		return nil
	}
	parts := []string{plural(len(s.Results), "test", "tests"), fmt.Sprintf("%d passed", s.Count(suite.Passed))}
	for _, status := range []suite.Status{suite.Failed, suite.Broken} {
		if n := s.Count(status); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	if n := s.Written(); n > 0 {
		parts = append(parts, plural(n, "golden tape", "golden tapes")+" written")
	}
	_, err := visible.Fprintf(std.out, "%s in %s\n", strings.Join(parts, ", "), testTime(d))
	return err
}

func summaryOf(s *suite.Summary) *scriptSummary {
	out := &scriptSummary{Passed: s.Count(suite.Passed), Failed: s.Count(suite.Failed), Broken: s.Count(suite.Broken),
		Written: s.Written(), Tests: []scriptTestLine{}, Notes: nonNil(s.Notes)}
	for _, r := range s.Results {
		line := scriptTestLine{Name: r.Name(), Status: r.Status, MS: float64(r.Took) / float64(time.Millisecond), Golden: r.Golden, Written: r.Written, Output: r.Output}
		if r.Err != nil {
			line.Error = suite.Detail(r.Err)
		}
		out.Tests = append(out.Tests, line)
	}
	return out
}
