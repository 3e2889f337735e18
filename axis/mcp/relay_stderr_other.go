//go:build !linux

package mcp

// copyStderr passes on what the server writes to its stderr.
func (t *talk) copyStderr() { t.copy(t.serverErr, t.clientErr, stderrSide, t.fromStderr, nil) }

// moveStderr does nothing: what the server writes to its stderr and to its stdout is in no order here.
func (t *talk) moveStderr() bool { return true }
