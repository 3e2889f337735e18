package jail

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrOverlay is what a *SetupError is when an overlay could not be mounted: its file system cannot be a layer. A full
// copy as the lower is what is left.
var ErrOverlay = errors.New("overlay cannot be mounted")

// opOverlay is the step that ErrOverlay stands for.
const opOverlay = "mount an overlay at"

// A SetupError says which step of making the jail failed, and where. Err is a syscall.Errno where the kernel refused;
// Detail is what the kernel said beside it.
type SetupError struct {
	Op     string
	Path   string
	Detail string
	Err    error
}

// Error implements error.
func (e *SetupError) Error() string {
	s := "jail: " + e.Op
	if e.Path != "" {
		s += " " + e.Path
	}
	s = fmt.Sprintf("%s: %v", s, e.Err)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// Unwrap returns the system's error.
func (e *SetupError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrOverlay) hold for the failure of an overlay.
func (e *SetupError) Is(target error) bool { return target == ErrOverlay && e.Op == opOverlay }

// stepError is nil where err is.
func stepError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &SetupError{Op: op, Path: path, Err: errnoOf(err)}
}

// errnoOf returns the system's error inside err, or err.
func errnoOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
