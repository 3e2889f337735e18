package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type testOptions struct {
	colorFlag
	gate.Options
	tree           treeFlag
	since          string
	junit, sarif   string
	github, strict bool
	verbose, list  bool
	q              queueFlags
}

func newTestCommand(std *console) *cobra.Command {
	var o testOptions
	cmd := withHelp("test", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if o.q.queue {
				return o.checkQueue(cmd)
			}
			for _, name := range []string{"store", "blobs", "project", "agent", "as", "program-version", "priority", "attempts"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s is about a store whose workers are to try its runs: add --queue", name)
				}
			}
			return takes("PATH…")(cmd, args)
		},
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.q.queue {
				return o.q.access(cmd.Context(), func(ctx context.Context, s team.Access) error { return runQueued(ctx, s, &o, args, std) })
			}
			return runTest(cmd.Context(), &o, args, std)
		},
	})
	f := cmd.Flags()
	f.IntVarP(&o.Jobs, "jobs", "j", 0, "how many `at once`; as many as there are processors")
	f.DurationVar(&o.Timeout, "timeout", gate.DefaultTimeout, "how long one replay may take, where tapedeck.yaml does not say")
	parsedFlag(f, &o.Mode, "mode", "", "what must match, in place of what tapedeck.yaml says: "+modeNames, func(s string) (*fidelity.Mode, error) {
		mode, err := fidelity.ParseMode(s)
		return &mode, err
	})
	completeFlag(cmd, "mode", modes...)
	o.tree.define(cmd, "recorded")
	f.StringArrayVar(&o.Watch, "watch", nil, watchHelp)
	f.StringVar(&o.since, "changed-since", "", "those alone that depend on a file that differs from this commit of Git (`REF`)")
	f.StringVar(&o.junit, "junit", "", "write the results as JUnit XML into this `file`")
	f.StringVar(&o.sarif, "sarif", "", "write what does not hold as SARIF 2.1.0 into this `file`")
	f.BoolVar(&o.github, "github", os.Getenv("GITHUB_ACTIONS") == "true", "annotations and step summary of a GitHub workflow")
	f.BoolVar(&o.strict, "strict", false, "what is unsure (masked values, side traffic, what could not be compared) ends with 2")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "what differs of those that hold, too")
	f.BoolVar(&o.list, "list", false, "say what would be tried, and try nothing")
	std.jsonFlag(cmd, "a line of JSON a result, and one for all")
	o.q.define(cmd)
	o.defineColor(cmd)
	return cmd
}

func runTest(ctx context.Context, o *testOptions, paths []string, std *console) error {
	cases, err := findTests(paths)
	if err != nil {
		return err
	}
	if o.list {
		return o.printCases(std, cases)
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	if err := o.fill(ctx); err != nil {
		return err
	}
	return o.report(ctx, len(cases), std, func(ctx context.Context, report func(*gate.Result)) (*gate.Summary, error) {
		o.Report = report
		return gate.Run(ctx, cases, &o.Options)
	})
}

// report says what becomes of n cases while run tries them, and then of all.
func (o *testOptions) report(ctx context.Context, n int, std *console, run func(ctx context.Context, report func(*gate.Result)) (*gate.Summary, error)) error {
	colours := o.colours(std.out)
	p := std.progress()
	ended := 0
	step, done := p.counted("tried")
	defer done()
	step(0, int64(n))
	s, err := run(ctx, func(r *gate.Result) { // one at a time
		p.end()
		ended++
		step(int64(min(ended, n)), int64(n)) // a script is several tests
		if std.json {
			printTestJSON(std.out, r)
			return
		}
		o.print(std.out, r, colours)
	})
	p.end()
	if left := o.write(s, std); left != nil {
		return left
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("interrupted: %d of %d done", ended, n)
	}
	if err != nil {
		return err
	}
	if exit := s.Exit(o.strict); exit != statusDone {
		return &statusError{status: exit}
	}
	return nil
}

// printCases says what would be tried.
func (o *testOptions) printCases(std *console, cases []gate.Case) error {
	for _, c := range cases {
		if !std.json {
			visible.Fprintf(std.out, "%-10s %s\n", c.Kind, c.Path)
			continue
		}
		if err := printLine(std.out, testCase{c.Path, c.Kind}); err != nil {
			return err
		}
	}
	return nil
}

// A testCase is what would be tried, with --list --json.
type testCase struct {
	Path string    `json:"path"`
	Kind gate.Kind `json:"kind"`
}

// findTests finds what paths hold; one that is not there may be the name of a recording.
func findTests(paths []string) ([]gate.Case, error) {
	for i, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		rec, err := openRecording(path)
		if err != nil {
			return nil, err
		}
		paths[i] = shortPath(rec.Dir)
	}
	return gate.Find(paths...)
}

// fill checks the options of the gate, and sets those that flags name in words of their own.
func (o *testOptions) fill(ctx context.Context) (err error) {
	switch {
	case o.Jobs < 0:
		return fmt.Errorf("-j %d: want at least 1", o.Jobs)
	case o.Timeout <= 0:
		return fmt.Errorf("--timeout %v: want more than nothing, as in 30s", o.Timeout)
	case o.junit != "" && sameFile(o.junit, o.sarif):
		return fmt.Errorf("--junit and --sarif both write %s: name two files", o.junit)
	}
	o.Own, o.TreeNow, o.TreeAt = o.own(), o.tree.now, o.tree.at
	if o.since != "" {
		o.Changed, err = gate.ChangedSince(ctx, ".", o.since)
	}
	return prefixedError("--changed-since", err)
}

// own lists the files that the command writes to while it runs.
func (o *testOptions) own() []string {
	own := deck.OutputFiles(os.Stdout, os.Stderr)
	for _, file := range []string{o.junit, o.sarif, os.Getenv("GITHUB_STEP_SUMMARY")} {
		if abs, err := filepath.Abs(file); err == nil && file != "" {
			own = append(own, abs)
		}
	}
	return own
}

// sameFile reports whether two names are one file's, which need not be there.
func sameFile(a, b string) bool {
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return b != "" && errA == nil && errB == nil && absA == absB
}

// testWords are what stands before a result, and its colour.
var testWords = map[gate.Status][2]string{
	gate.Faithful: {"ok", "32"}, gate.Unsure: {"unsure", "33"}, gate.Expected: {"expected", "33"}, gate.Skipped: {"skipped", "2"},
}

// print writes a result's line, and of one that does not hold what differs first.
func (o *testOptions) print(w io.Writer, r *gate.Result, colours bool) {
	word, known := testWords[r.Status]
	if !known || r.Status.Exit(o.strict) != statusDone {
		word = [2]string{strings.ToUpper(string(r.Status)), "31"}
	}
	before, after := "", ""
	if colours {
		before, after = "\x1b["+word[1]+"m", "\x1b[0m"
	}
	raw(w, "%s%-10s%s ", before, word[0], after)
	visible.Fprintf(w, "%s  %.2f s", r.Name, r.Took.Seconds())
	if r.Status != gate.Faithful && r.Why != "" {
		visible.Fprintf(w, "  %s", visible.Line(r.Why))
	}
	raw(w, "\n")
	if r.Status.Exit(o.strict) != statusDone || o.verbose || r.Status == gate.Unsure {
		below(w, r.First)
		below(w, r.Output)
	}
	for i := range r.Expect {
		if e := &r.Expect[i]; r.Status != gate.Faithful || e.Met == 0 {
			below(w, e.String())
		}
	}
}

// below writes lines below a result's. None begins with what others wrote: to a workflow's runner a line with "::" in front is a command.
func below(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		visible.Fprintf(w, "         | %s\n", strings.TrimRight(line, "\n"))
	}
}

// A testLine is a result with --json.
type testLine struct {
	Path   string             `json:"path"`
	Kind   gate.Kind          `json:"kind"`
	Name   string             `json:"name"`
	Status gate.Status        `json:"status"`
	MS     float64            `json:"ms"`
	Why    string             `json:"why,omitempty"`
	First  string             `json:"first,omitempty"`
	Stderr string             `json:"stderr,omitempty"`
	Expect []gate.Expectation `json:"expect,omitempty"`
	Report *fidelity.Report   `json:"report,omitempty"`
}

func printTestJSON(w io.Writer, r *gate.Result) error {
	return printLine(w, testLine{r.Path, r.Kind, r.Name, r.Status, float64(r.Took) / float64(time.Millisecond), r.Why, r.First, r.Output, r.Expect, r.Report})
}

// write writes what is about all results.
func (o *testOptions) write(s *gate.Summary, std *console) error {
	var err error
	if std.json {
		counts := make(map[gate.Status]int)
		for _, r := range s.Results {
			counts[r.Status]++
		}
		line := map[string]any{"summary": counts, "ms": float64(s.Took) / float64(time.Millisecond), "exit": s.Exit(o.strict)}
		if s.Left > 0 {
			line["not_tried"] = s.Left
		}
		err = printLine(std.out, line)
	} else if len(s.Results) > 0 {
		_, err = visible.Fprintf(std.out, "%s in %.1f s\n", s, s.Took.Seconds())
	}
	for file, write := range map[string]func(io.Writer, bool) error{o.junit: s.WriteJUnit, o.sarif: s.WriteSARIF} {
		if file != "" {
			err = errors.Join(err, writeWhole(file, func(w io.Writer) error { return write(w, o.strict) }))
		}
	}
	if !o.github {
		return err
	}
	for _, r := range s.Results {
		err = errors.Join(err, r.Annotate(std.err, o.strict))
	}
	return errors.Join(err, stepSummary(func(w io.Writer) error { return s.WriteMarkdown(w, o.strict) }))
}

// stepSummary appends to the file that a GitHub workflow shows as the summary of the step, where there is one.
func stepSummary(write func(io.Writer) error) error {
	name := os.Getenv("GITHUB_STEP_SUMMARY")
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
