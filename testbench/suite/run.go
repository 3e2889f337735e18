package suite

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// Options are how tests run. Nil and zero work.
type Options struct {
	Config *testbench.Config // of every bench, but for what lies beside a file; Emit and Name are not used
	Script script.Options    // the limits of every test; Entry and Print are not used
	Match  *regexp.Regexp    // runs the tests alone whose FILE:FUNCTION it finds; nil is all
	Update bool              // writes the golden tape of every test that passes, where it is another or not there
	Report func(*Result)     // is told of each test when it has run
}

// ErrLeftBehind ends Run: a test is in a step without an end and could not be stopped. Whoever runs tests ends the process then.
var ErrLeftBehind = errors.New("a script could not be stopped; the tests after it were not run")

// Run runs the tests of files, which Find gave, one after the other. What a test meets is in its Result; the error is ctx's, or
// ErrLeftBehind, and the Summary holds what ran until then.
func Run(ctx context.Context, files []string, o *Options) (*Summary, error) {
	if o == nil {
		o = &Options{}
	}
	var s Summary
	for _, file := range files {
		if err := runFile(ctx, file, o, &s); err != nil {
			return &s, err
		}
	}
	return &s, nil
}

func runFile(ctx context.Context, file string, o *Options, s *Summary) error {
	functions, err := tests(file)
	conf := o.Config
	if conf == nil {
		conf = &testbench.Config{}
	}
	if err == nil {
		conf, err = beside(file, conf)
	}
	if err != nil {
		s.add(&Result{File: file, Status: Broken, Err: err}, o)
		return nil
	}
	var unused [][]string
	for _, f := range functions {
		t := &test{file: file, function: f, conf: conf, opts: o}
		if o.Match != nil && !o.Match.MatchString(filepath.ToSlash(file)+":"+f) {
			unused = append(unused, nil) // it might have asked
			continue
		}
		r := t.run(ctx)
		if r.Err != nil && ctx.Err() != nil { // which ended it
			return ctx.Err()
		}
		s.add(r, o)
		unused = append(unused, t.unused)
		if LeftBehind(r.Err) {
			return ErrLeftBehind
		}
	}
	if !slices.ContainsFunc(s.Results, func(r *Result) bool { return r.File == file && r.Err != nil }) { // else it may be why
		s.Notes = append(s.Notes, notes(file, unused)...)
	}
	return nil
}

// tests lists the tests of a file.
func tests(file string) ([]string, error) {
	functions, err := script.Tests(file)
	if err == nil && len(functions) == 0 {
		functions = []string{"main"}
	}
	return functions, err
}

func (s *Summary) add(r *Result, o *Options) {
	s.Results = append(s.Results, r)
	if o.Report != nil {
		o.Report(r)
	}
}

// notes says what no test of a file asked for.
func notes(file string, unused [][]string) (all []string) {
	if len(unused) == 0 {
		return nil
	}
	for _, what := range unused[0] {
		never := func(other []string) bool { return slices.Contains(other, what) }
		if !slices.ContainsFunc(unused[1:], func(other []string) bool { return !never(other) }) {
			all = append(all, file+": no test asked for "+what)
		}
	}
	return all
}

// A test is one that runs.
type test struct {
	file, function string
	conf           *testbench.Config
	opts           *Options
	unused         []string // what was not asked for
}

func (t *test) run(ctx context.Context) *Result {
	r := &Result{File: t.file, Function: t.function}
	begun := time.Now()
	var output bytes.Buffer
	r.Err = t.onBench(ctx, r, &output)
	r.Took, r.Status = time.Since(begun), StatusOf(r.Err)
	if !LeftBehind(r.Err) { // else it may still be written to
		r.Output = output.String()
	}
	return r
}

func (t *test) onBench(ctx context.Context, r *Result, output *bytes.Buffer) error {
	path := golden(t.file, t.function)
	held, err := exists(path)
	if err != nil {
		return err
	}
	conf := *t.conf
	conf.Emit, conf.Keep = "", held || t.opts.Update
	conf.Name = filepath.Base(t.file) + ":" + t.function // wherever it is run from
	b, err := testbench.Open(&conf)
	if err != nil {
		return Flagged(err)
	}
	limits := t.opts.Script
	limits.Entry, limits.Print = t.function, output
	_, err = script.Run(ctx, b, t.file, &limits)
	err = end(b, err)
	t.unused = b.Unused()
	if err != nil || !conf.Keep {
		return err
	}
	return t.hold(b, path, r)
}

// end ends a bench whose program ended with err, and returns what the run ended with.
func end(b *testbench.Bench, err error) error {
	if LeftBehind(err) { // the bench is still in use: it is not closed, and its tape ends with the last record
		return errors.Join(err, b.Recorder().Flush())
	}
	if err != nil || b.Refused() != nil {
		b.Fail()
	}
	err = errors.Join(err, unlessSaid(err, b.Close()))
	if err == nil {
		err = b.Refused() // and the program went on
	}
	return err
}

// unlessSaid leaves out what the run has failed with already.
func unlessSaid(said, err error) error {
	if said != nil && errors.Is(said, err) {
		return nil
	}
	return err
}

// hold holds the tape against the golden one.
func (t *test) hold(b *testbench.Bench, path string, r *Result) error {
	held, err := b.HoldGolden(path, fidelity.ByteIdentical, t.opts.Update)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it went while the test ran
	}
	if err != nil {
		return err
	}
	r.Golden, r.Written = path, held.Written
	if !held.Same() {
		return &GoldenError{Path: path, Differs: held.String()}
	}
	return nil
}
