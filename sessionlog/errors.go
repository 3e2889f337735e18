package sessionlog

import (
	"errors"
	"fmt"
)

// What a LoadError wraps.
var (
	ErrTorn        = errors.New("the log ends within an entry, as a crash leaves it")
	ErrNotJSON     = errors.New("not JSON")
	ErrMalformed   = errors.New("not an entry of a session log")
	ErrLineTooLong = fmt.Errorf("longer than the limit of %d bytes", MaxEntry)
)

// A LoadError is a log that cannot be read, and where.
type LoadError struct {
	Path   string
	Line   int   // from 1, blank lines included
	Offset int64 // where the entry begins, in bytes
	Err    error // wraps ErrTorn, ErrNotJSON, ErrMalformed or ErrLineTooLong, or is an *EventError
}

func (e *LoadError) Error() string { return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }
