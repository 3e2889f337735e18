package suite

import (
	"errors"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

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
