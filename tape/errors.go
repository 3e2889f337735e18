package tape

import (
	"errors"
	"fmt"
)

// What a LoadError wraps.
var (
	// ErrEmpty says that the tape holds nothing, or blank lines alone.
	ErrEmpty = errors.New("the tape is empty: its first line must be a header")
	// ErrNoHeader says that the first line is something else, a record for one.
	ErrNoHeader = errors.New("the header is missing: the first line must be one")
	// ErrSecondHeader says that a header stands behind the first line.
	ErrSecondHeader = errors.New("a second header: only the first line is one")
	// ErrNotJSON says that a line is not JSON in UTF-8.
	ErrNotJSON = errors.New("the line is not JSON")
	// ErrMalformed says that a line is JSON and not what its type or kind demands: a key is missing, stands twice or has a
	// value of the wrong type. Where a digest is not 64 lowercase hex digits, cas.ErrName is wrapped beside it.
	ErrMalformed = errors.New("the line does not hold what it must")
	// ErrVersion says that the tape is of a newer version than Version. The message names both.
	ErrVersion = errors.New("the tape is too new")
	// ErrTorn says that the last line has no newline and is not JSON.
	ErrTorn = errors.New("the last line is torn: what wrote the tape was stopped in the middle of it")
	// ErrLineTooLong says that a line is longer than MaxLine.
	ErrLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)
)

// A LoadError says where a tape does not hold, and wraps one of the errors above.
type LoadError struct {
	Path string // the tape, as it was named to the reader
	Line int    // from 1
	Err  error
}

// Error implements error.
func (e *LoadError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LoadError) Unwrap() error { return e.Err }
