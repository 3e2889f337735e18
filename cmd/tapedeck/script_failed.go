package main

import (
	"errors"
	"io"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

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

// A failedReport is the verdict on a program that failed by itself too.
type failedReport struct {
	*fidelity.Report
	failure *scriptFailure
}

// MarshalJSON puts the keys of both into one object.
func (r failedReport) MarshalJSON() ([]byte, error) {
	report, err := marshal(r.Report)
	if err != nil {
		return nil, err
	}
	failure, err := marshal(r.failure)
	return append(append(report[:len(report)-1], ','), failure[1:]...), err
}

// jsonWhatever has do, whose result is one object on stdout where json is set, print one of its error too, unless it has printed.
func jsonWhatever(json bool, std streams, do func(std streams) error) error {
	if !json {
		return do(std)
	}
	out := &written{w: std.out}
	std.out = out
	err := do(std)
	if err == nil || out.any {
		return err
	}
	if unprinted := printJSON(std.out, failureOf(err)); unprinted != nil {
		return unprinted
	}
	return err
}

// written knows whether anything was.
type written struct {
	w   io.Writer
	any bool
}

func (w *written) Write(b []byte) (int, error) {
	w.any = w.any || len(b) > 0
	return w.w.Write(b)
}
