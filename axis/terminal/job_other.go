//go:build !linux

package terminal

import "os"

// A Job is our own process group as one of the jobs of the caller's shell; on this system a program on a terminal of its
// own cannot be stopped, and nothing is told.
type Job struct {
	Stops, Continued chan os.Signal
}

// NewJob returns a Job that tells nothing.
func NewJob() *Job { return new(Job) }

// Close does nothing here.
func (*Job) Close() {}

// Suspend does nothing here.
func (*Job) Suspend() {}
