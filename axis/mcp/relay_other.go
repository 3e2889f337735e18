//go:build !linux

package mcp

import (
	"os"
)

// copyStderr passes on what the server writes to its stderr.
func (t *relay) copyStderr() { t.copy(t.serverErr, t.clientErr, stderrSide, t.fromStderr, nil) }

// moveStderr does nothing: what the server writes to its stderr and to its stdout is in no order here.
func (t *relay) moveStderr() bool { return true }

// hungUp reports false.
func (e *end) hungUp() bool { return false }

// gone reports false: here only a write tells that nobody reads any more.
func (e *end) gone() bool { return false }

// leave calls closing: who else reads cannot be seen here.
func leave(_ *os.File, closing func()) { closing() }

// unread knows nothing here.
func unread(*os.File) int { return 0 }
