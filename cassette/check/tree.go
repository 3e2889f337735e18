package check

import (
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// Bounds of a scenario file.
const (
	maxScenario = 4 << 20 // bytes
	maxKeys     = 16      // of a list of names in a message
)

// A reading is one scenario file while it is read.
type reading struct {
	file string
	errs []*SyntaxError
}

func (r *reading) errorf(at plainyaml.Place, format string, args ...any) {
	r.errs = append(r.errs, &SyntaxError{File: r.file, Line: at.Line, Column: at.Column, Problem: fmt.Sprintf(format, args...)})
}

// tree reads YAML, of which JSON is a part. It returns nil where it has added an error.
func (r *reading) tree(b []byte) *plainyaml.Node {
	n, err := plainyaml.Parse(b, maxScenario)
	var wrong *plainyaml.Error
	switch {
	case errors.As(err, &wrong):
		r.errorf(wrong.Place, "%s", wrong.Problem)
	case n == nil:
		r.errorf(plainyaml.Place{Line: 1, Column: 1}, "expected a scenario, got an empty file; begin with: version: 1")
	}
	return n
}
