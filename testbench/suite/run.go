package suite

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
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
		if r.Err != nil && ctx.Err() != nil && !LeftBehind(r.Err) { // which ended it
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

// A Status is how a test ended.
type Status string

// A test that passed, one in which an assertion or its golden tape did not hold, and one that could not come to its end.
const (
	Passed Status = "passed"
	Failed Status = "failed"
	Broken Status = "broken"
)

// A Result is one test that ran.
type Result struct {
	File     string        // its path
	Function string        // "" where the file itself could not be read
	Status   Status        //
	Err      error         // nil of one that passed
	Golden   string        // the path of the golden tape that it was held against, "" for none
	Written  bool          // that golden tape was written anew
	Took     time.Duration // of real time
	Output   string        // what it logged
}

// Name is FILE:FUNCTION.
func (r *Result) Name() string {
	if r.Function == "" {
		return r.File
	}
	return r.File + ":" + r.Function
}

// A Summary is all tests that ran, in order.
type Summary struct {
	Results []*Result
	Notes   []string // for people: rules and recorded calls that no test of their file asked for
}

// Count returns how many tests ended so.
func (s *Summary) Count(status Status) (n int) {
	for _, r := range s.Results {
		if r.Status == status {
			n++
		}
	}
	return n
}

// Written returns how many golden tapes were.
func (s *Summary) Written() (n int) {
	for _, r := range s.Results {
		if r.Written {
			n++
		}
	}
	return n
}

// A GoldenError says that a test's tape is not its golden one.
type GoldenError struct {
	Path    string
	Differs string // for people, several lines
}

func (e *GoldenError) Error() string {
	return "the run's tape is not the golden one of " + e.Path + "; where the change is meant, --update writes it anew\n" + e.Differs
}

// StatusOf is how a run that ended with err ended.
func StatusOf(err error) Status {
	var assertion *script.AssertionError
	var golden *GoldenError
	switch {
	case err == nil:
		return Passed
	case errors.As(err, &assertion), errors.As(err, &golden):
		return Failed
	}
	return Broken
}

// Detail is err for people, without a line's end: of a script's errors, each with its line, its stack and the next step.
func Detail(err error) string {
	var parts []string
	for _, e := range Each(err) {
		var s *script.Error
		if errors.As(e, &s) {
			parts = append(parts, strings.TrimRight(s.Detail(), "\n"))
			continue
		}
		parts = append(parts, e.Error())
	}
	return strings.Join(parts, "\n")
}

// Place is where in a script err came about, FILE:LINE:COL; "" where it is not known.
func Place(err error) string {
	var e *script.Error
	if !errors.As(err, &e) || e.Line == 0 {
		return ""
	}
	return e.String()
}

// Each takes what errors.Join put together apart.
func Each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, Each(e)...)
		}
		return all
	}
	return []error{err}
}

// LeftBehind reports whether what failed with err still runs, though Run has returned: the process is to end.
func LeftBehind(err error) bool {
	var e *script.Error
	return errors.As(err, &e) && e.LeftBehind
}

// NeverBegan reports whether what failed with err is no program that runs: it is not there, or does not compile.
func NeverBegan(err error) bool {
	var (
		s       *script.Error
		module  *wasi.ModuleError
		imports *wasi.ImportError
		limit   *script.LimitError
	)
	switch {
	case errors.As(err, &s):
		return len(s.Stack) == 0 && !errors.As(err, &limit)
	case errors.As(err, &module), errors.As(err, &imports):
		return true
	}
	return false
}

// A Program is a script, or a WASI module: a file whose name ends in .wasm.
type Program struct {
	Path   string
	Limits script.Options // Args, Entry and Print are not used; Steps holds for scripts alone
	In     io.Reader      // a module's standard input; nil is empty
	Out    io.Writer      // gets what a script returns, or a module prints; nil drops it
	Err    io.Writer      // gets what a script logs, or a module prints on standard error; nil drops it
}

// An Outcome is how a program ended that came to its end.
type Outcome struct {
	Result     json.RawMessage // what a script returned; null of a module
	Steps      uint64          // of a script
	Assertions int             // of a script: those that held
}

// IsModule reports whether a program is a WASI module.
func (p *Program) IsModule() bool { return strings.HasSuffix(p.Path, ".wasm") }

// Run runs the program on b and ends b. What it returns has been written when it ends, whatever b's end meets. The error is what Detail
// tells and StatusOf sorts; LeftBehind says of a program that it still runs.
func (p *Program) Run(ctx context.Context, b *testbench.Bench) (*Outcome, error) {
	run := p.script
	if p.IsModule() {
		run = p.module
	}
	out, err := run(ctx, b)
	if err = end(b, err); err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Program) script(ctx context.Context, b *testbench.Bench) (*Outcome, error) {
	limits := p.Limits
	limits.Entry, limits.Args, limits.Print = "", nil, p.Err
	r, err := script.Run(ctx, b, p.Path, &limits)
	if err != nil {
		return nil, err
	}
	if p.Out != nil {
		err = r.Fprint(p.Out)
	}
	return &Outcome{Result: r.JSON, Steps: r.Steps, Assertions: r.Assertions}, err
}

func (p *Program) module(ctx context.Context, b *testbench.Bench) (*Outcome, error) {
	cache, err := moduleCache()
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	_, err = wasi.Run(ctx, b, p.Path, &wasi.Options{
		Stdin: p.In, Stdout: p.Out, Stderr: p.Err, Memory: p.Limits.Memory, Timeout: p.Limits.Timeout, Cache: cache,
	})
	return &Outcome{Result: json.RawMessage("null")}, err
}

// moduleCache keeps compiled modules in the user's directory of caches, which nobody else may write to; in memory where there is none.
func moduleCache() (*wasi.Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return wasi.NewCache("")
	}
	dir = filepath.Join(dir, "tapedeck", "modules")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wasi.NewCache("") // a home that is read-only costs time alone
	}
	if st, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && st.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s holds machine code and may be written to by others: chmod go-w %[1]s", dir)
	}
	return wasi.NewCache(dir)
}

// first holds what Create writes; NAME stands for the name, in names and texts.
//
//go:embed first/*
var first embed.FS

var goodName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// stubName is the name of the type stub that Create writes: Pyright, and editors with it, take the names in it for built in.
const stubName = "__builtins__.pyi"

// Create writes a first script called name into dir, which is made where it is not there: the script, its tests, the answers of the
// model that they need, and the type stub for editors. It returns the files that it wrote in that order. Nothing is written where one of
// them is there already, but for the stub, which stays as it is.
func Create(dir, name string) ([]string, error) {
	name = strings.TrimSuffix(name, ".star")
	if !goodName.MatchString(name) || strings.HasSuffix(name+".star", Suffix) {
		return nil, fmt.Errorf("%q is no name for a script: want letters, digits, _ and -, and no _test at its end", name)
	}
	var paths []string
	for _, from := range []string{"NAME.star", "NAME_test.star", "NAME_test.llm.jsonl"} {
		path := filepath.Join(dir, strings.ReplaceAll(from, "NAME", name))
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, fmt.Errorf("%s is there already: choose another name", path))
		}
		paths = append(paths, path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := first.ReadFile("first/NAME" + strings.TrimPrefix(filepath.Base(path), name))
		if err == nil {
			err = create(path, bytes.ReplaceAll(text, []byte("NAME"), []byte(name)))
		}
		if err != nil {
			return nil, err
		}
	}
	stub := filepath.Join(dir, stubName)
	switch err := create(stub, script.Stub()); {
	case err == nil:
		paths = append(paths, stub)
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	return paths, nil
}

func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Rules returns the calls of models on the tape at path, or that of a recording, as rules of a fixture, in order. The error is that of
// the tape, or that a blob which a call names is missing; a tape without such a call has no rules.
func Rules(path string) ([]fixture.Rule, error) {
	path = testbench.TapePath(path)
	t, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rules, err := fixture.FromTape(t.Records(), t.Store)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}
