package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// What script run prints with --json: of one script, and of tests.
type (
	scriptResult struct {
		Status     suite.Status    `json:"status"` // passed; of one that fails a scriptFailure is printed
		Result     json.RawMessage `json:"result"`
		Steps      uint64          `json:"steps,omitempty"`
		Assertions int             `json:"assertions"`
		Tape       string          `json:"tape,omitempty"`
		Unused     []string        `json:"unused,omitempty"`
	}
	scriptSummary struct {
		Passed  int              `json:"passed"`
		Failed  int              `json:"failed"`
		Broken  int              `json:"broken"`
		Written int              `json:"written"`
		Tests   []scriptTestLine `json:"tests"`
		Notes   []string         `json:"notes,omitempty"`
	}
	scriptTestLine struct {
		Name    string       `json:"name"`
		Status  suite.Status `json:"status"`
		MS      float64      `json:"ms"`
		Golden  string       `json:"golden,omitempty"`
		Written bool         `json:"written,omitempty"`
		Error   string       `json:"error,omitempty"`
		Output  string       `json:"output,omitempty"`
	}
)

func runScriptTests(ctx context.Context, o *scriptRunOptions, conf *testbench.Config, limits script.Options, paths, args []string, std streams) error {
	opts := &suite.Options{Config: conf, Script: limits, Update: o.update}
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
	if !o.json {
		opts.Report = func(r *suite.Result) { printTest(std, r) }
	}
	begun := time.Now()
	s, err := suite.Run(ctx, files, opts)
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if left := printTests(o.json, s, time.Since(begun), std); err == nil {
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
func printTest(std streams, r *suite.Result) {
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

// testTime is a short time of a test.
func testTime(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func printTests(asJSON bool, s *suite.Summary, d time.Duration, std streams) error {
	if asJSON {
		return printJSON(std.out, summaryOf(s))
	}
	for _, n := range s.Notes {
		visible.Fprintf(std.err, "tapedeck: %s\n", n)
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
		Written: s.Written(), Tests: []scriptTestLine{}, Notes: s.Notes}
	for _, r := range s.Results {
		line := scriptTestLine{Name: r.Name(), Status: r.Status, MS: float64(r.Took) / float64(time.Millisecond), Golden: r.Golden, Written: r.Written, Output: r.Output}
		if r.Err != nil {
			line.Error = suite.Detail(r.Err)
		}
		out.Tests = append(out.Tests, line)
	}
	return out
}
