package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

func newScriptCommand(std *console) *cobra.Command {
	cmd := commandGroup("script",
		newScriptRunCommand(std), newScriptReplayCommand(std), newScriptFidelityCommand(std), newScriptNewCommand(std), newScriptFixtureCommand(std),
	)
	cmd.SuggestFor = []string{"test"}
	return cmd
}

func newScriptNewCommand(std *console) *cobra.Command {
	cmd := command("script new", "NAME", func(_ *cobra.Command, args []string) error { return runScriptNew(args[0], std) })
	std.jsonFlag(cmd, "what was written as JSON")
	return cmd
}

func runScriptNew(name string, std *console) error {
	paths, err := suite.Create(filepath.Dir(name), filepath.Base(name))
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"files": paths})
	}
	for _, path := range paths {
		std.say("wrote %s", shortPath(path))
	}
	return std.say("tapedeck script run %s runs the tests", shortPath(paths[1]))
}

type scriptFixtureOptions struct {
	force bool
}

func newScriptFixtureCommand(std *console) *cobra.Command {
	var o scriptFixtureOptions
	cmd := command("script fixture", "REC OUT.jsonl", func(cmd *cobra.Command, args []string) error {
		return runScriptFixture(cmd.Context(), &o, args[0], args[1], std)
	})
	f := cmd.Flags()
	f.BoolVarP(&o.force, "force", "f", false, "replace OUT.jsonl where it is there")
	std.jsonFlag(cmd, "what was written as JSON")
	return cmd
}

func runScriptFixture(ctx context.Context, o *scriptFixtureOptions, from, out string, std *console) error {
	if std.json && out == "-" {
		return fmt.Errorf("script fixture: --json and the fixture both want stdout: name a file in place of -")
	}
	path, clean, err := anyTape(ctx, from, std.progress())
	if err != nil {
		return err
	}
	defer clean()
	rules, err := suite.Rules(path)
	if err != nil {
		return err
	}
	if len(rules) == 0 {
		return fmt.Errorf("%s holds no call of a model", from)
	}
	n, err := putWhole(out, o.force, std.out, func(w io.Writer) error { return fixture.WriteRules(w, rules) })
	switch {
	case err != nil:
		return err
	case out == "-":
		return nil
	case std.json:
		return printJSON(std.out, map[string]any{"file": out, "rules": len(rules), "bytes": n})
	}
	return std.say("wrote %s into %s", plural(len(rules), "rule", "rules"), shortPath(out))
}

// anyTape returns the path of the tape or recording that name stands for, unpacked until clean is called.
func anyTape(ctx context.Context, name string, p *progress) (path string, clean func(), err error) {
	if path, err = tapeOrRecording(name); err != nil {
		return "", nil, err
	}
	if err = notForCassette(path); err != nil {
		return "", nil, err
	}
	return unpacked(ctx, path, p)
}

func newScriptFidelityCommand(std *console) *cobra.Command {
	o := diffOptions{}
	cmd := command("script fidelity", "A B", func(cmd *cobra.Command, args []string) error {
		return jsonWhatever(std, func() error { return runDiff(cmd.Context(), &o, args[0], args[1], std) })
	})
	f := cmd.Flags()
	modeFlag(cmd, &o.Mode)
	f.BoolVar(&o.Aligned, "aligned", false, "align the records, so that an inserted or moved one reads as one")
	o.define(cmd)
	std.jsonFlag(cmd, "the report as JSON")
	return cmd
}

type scriptReplayOptions struct {
	verdictFlags
	limits  limitFlags
	mode    fidelity.Mode
	aligned bool
	emit    string
	files   string
}

func newScriptReplayCommand(std *console) *cobra.Command {
	var o scriptReplayOptions
	cmd := command("script replay", "TAPE FILE", func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		return jsonWhatever(std, func() error {
			return runScriptReplay(ctx, &o, args[0], args[1], std)
		})
	})
	f := cmd.Flags()
	modeFlag(cmd, &o.mode)
	f.BoolVar(&o.aligned, "aligned", false, "align the records, so that an inserted or moved one reads as one")
	f.StringVar(&o.emit, "emit-tape", "", "write the replay's own tape to `TAPE`, over what is there")
	f.StringVar(&o.files, "files", "", "take what the recorded run read from `DIR`, where the tape has hashes alone")
	o.limits.define(f)
	o.define(cmd)
	std.jsonFlag(cmd, "the report as JSON")
	return cmd
}

func runScriptReplay(ctx context.Context, o *scriptReplayOptions, from, file string, std *console) error {
	mode, text := o.mode, o.text(std.err)
	if err := o.limits.check(); err != nil {
		return err
	}
	path, clean, err := anyTape(ctx, from, std.progress())
	if err != nil {
		return err
	}
	defer clean()
	b, err := testbench.Replay(path, &testbench.Config{Name: file, Emit: o.emit, Files: testbench.Files{Read: o.files}, OwnReadings: mode == fidelity.Outcome})
	if err != nil {
		return suite.Flagged(err)
	}
	program := suite.Program{Path: file, Limits: o.limits.Options, In: std.in, Out: std.out, Err: std.err}
	if std.json {
		program.Out = std.err
	}
	_, failed := program.Run(ctx, b)
	if suite.LeftBehind(failed) || suite.NeverBegan(failed) || ctx.Err() != nil {
		return scriptError(ctx, failed)
	}
	verdict := b.Verdict
	if o.aligned {
		verdict = b.AlignedVerdict
	}
	report, err := verdict(mode)
	if err != nil {
		return errors.Join(err, failed)
	}
	err = replayed(ctx, report, failed, std, text)
	if program.IsModule() && mode != fidelity.Outcome && slices.ContainsFunc(report.Refused, isReading) {
		std.say("the runtime of a module reads clocks and random numbers by itself, which no other program's tape holds: --mode outcome answers them and compares what came of the run")
	}
	return err
}

func isReading(r fidelity.RequestRef) bool {
	switch r.Method {
	case (*tape.ClockRead)(nil).Name(), (*tape.RandomRead)(nil).Name():
		return true
	}
	return false
}

// replayed prints the verdict. What ended the script tells more than the verdict where the tape answered all that it asked for.
func replayed(ctx context.Context, r *fidelity.Report, failed error, std *console, text *fidelity.TextOptions) error {
	if failed == nil {
		return printReport(r, std, std.err, text)
	}
	err := scriptError(ctx, failed)
	verdict := verdictOf(r)
	if status := new(statusError); errors.As(verdict, &status) {
		err = &statusError{status.status, err}
	}
	var unprinted error
	if std.json {
		unprinted = printJSON(std.out, joined{r, failureOf(err)})
	} else {
		unprinted = r.WriteText(std.err, text)
	}
	if unprinted != nil {
		return unprinted
	}
	if verdict == nil || len(r.Refused) == 0 {
		return err
	}
	if place := suite.Place(failed); place != "" { // which the verdict has told, but for the place
		std.say("the call that the tape does not answer is at %s", place)
	}
	return verdict
}

// What --json says of a command that did not come to its end.
type (
	scriptFailure struct {
		Status suite.Status `json:"status"` // failed: an assertion did not hold; broken: it could not come to its end
		Exit   int          `json:"exit"`   // the command's status
		Error  scriptFault  `json:"error"`
	}
	scriptFault struct {
		Message string        `json:"message"`
		File    string        `json:"file,omitempty"`
		Line    int           `json:"line,omitempty"`
		Col     int           `json:"col,omitempty"`
		Source  string        `json:"source,omitempty"`
		Stack   []scriptFrame `json:"stack,omitempty"` // the innermost call first
		Hint    string        `json:"hint,omitempty"`
		Also    []string      `json:"also,omitempty"` // what went wrong after it, each as people read it
	}
	scriptFrame struct {
		Name string `json:"name"`
		File string `json:"file,omitempty"`
		Line int    `json:"line,omitempty"`
		Col  int    `json:"col,omitempty"`
	}
)

// A programError is what ended a program, with its stack and next step for people. It is no cause of the command's: what may help the
// command would mislead about the program.
type programError struct{ err error }

func (e *programError) Error() string { return suite.Detail(e.err) }

// failureOf is err, which a command returns, for a program to read.
func failureOf(err error) *scriptFailure {
	f := &scriptFailure{Exit: statusFailed}
	if se := (*statusError)(nil); errors.As(err, &se) {
		f.Exit = se.status
	}
	hint := hintFor(err)
	if e := (*programError)(nil); errors.As(err, &e) {
		err = e.err
	}
	f.Status = suite.StatusOf(err)
	all := suite.Each(err)
	f.Error = faultOf(all[0])
	if f.Error.Hint == "" {
		f.Error.Hint = hint
	}
	for _, e := range all[1:] {
		f.Error.Also = append(f.Error.Also, suite.Detail(e))
	}
	return f
}

func faultOf(err error) scriptFault {
	var e *script.Error
	var trap *wasi.TrapError
	switch {
	case errors.As(err, &e):
		f := scriptFault{Message: e.Message, File: e.File, Line: e.Line, Col: e.Col, Source: e.Source, Hint: e.Hint}
		for i := len(e.Stack) - 1; i >= 0; i-- {
			s := &e.Stack[i]
			f.Stack = append(f.Stack, scriptFrame{Name: s.Name, File: s.File, Line: s.Line, Col: s.Col})
		}
		return f
	case errors.As(err, &trap):
		f := scriptFault{Message: err.Error()}
		for _, name := range trap.Stack {
			f.Stack = append(f.Stack, scriptFrame{Name: name})
		}
		return f
	}
	return scriptFault{Message: err.Error()}
}

// jsonWhatever has do, whose result is one object on stdout with --json, print one of its error too, unless it has printed.
func jsonWhatever(std *console, do func() error) error {
	if !std.json {
		return do()
	}
	out := &counted{w: std.out}
	std.out = out
	err := do()
	if err == nil || out.n > 0 {
		return err
	}
	if unprinted := printJSON(std.out, failureOf(err)); unprinted != nil {
		return unprinted
	}
	return err
}
