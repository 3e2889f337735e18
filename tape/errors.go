package tape

import (
	"errors"
	"fmt"
)

// What a LoadError wraps where a tape as a whole does not hold. A record that is JSON but not what its kind demands has an
// error of its own that says what is wrong with it.
var (
	ErrEmpty        = errors.New("the tape is empty: its first line must be a header")
	ErrNoHeader     = errors.New("the first line is no header")
	ErrSecondHeader = errors.New("a second header: a tape has one, on its first line")
	ErrNotJSON      = errors.New("the line is not JSON")
	ErrVersion      = errors.New("the tape is newer than this reader")
	ErrTorn         = errors.New("the last line is torn: what wrote the tape was stopped in the middle of it")
	ErrLineTooLong  = fmt.Errorf("the line is longer than %d bytes", MaxLine)
)

// A LoadError says where a tape does not hold. Err is one of the errors above, or wraps one, or says what is wrong with a
// record.
type LoadError struct {
	Path string // the tape, as it was named to the reader
	Line int    // from 1
	Err  error
}

// Error implements error.
func (e *LoadError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *LoadError) Unwrap() error { return e.Err }
