// Package step says which step of making a jail failed, and where.
//
// Goals: one error for all that the recorder, the init and the exec stage do before the program starts. Not goals: what to do about it,
// which the jail knows.
package step

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrOverlay is what a *Error is when an overlay could not be mounted: its file system cannot be a layer. A full
// copy as the lower is what is left.
var ErrOverlay = errors.New("overlay cannot be mounted")

// OpOverlay is the step that ErrOverlay stands for.
const OpOverlay = "mount an overlay at"

// A Error says which step of making the jail failed, and where. Err is a syscall.Errno where the kernel refused;
// Detail is what the kernel said beside it.
type Error struct {
	Op     string
	Path   string
	Detail string
	Err    error
}

// Error implements error.
func (e *Error) Error() string {
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
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrOverlay) hold for the failure of an overlay.
func (e *Error) Is(target error) bool { return target == ErrOverlay && e.Op == OpOverlay }

// Wrap is nil where err is.
func Wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Path: path, Err: Errno(err)}
}

// Errno returns the system's error inside err, or err.
func Errno(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// An ExecError says that the program could not be started inside. Err is a syscall.Errno: ENOENT, EACCES, ENOEXEC.
type ExecError struct {
	Op   string // execve or chdir
	Path string
	Err  error
}

// Error implements error.
func (e *ExecError) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns the system's error.
func (e *ExecError) Unwrap() error { return e.Err }
