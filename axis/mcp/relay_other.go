//go:build !linux

package mcp

import (
	"os"
)

// copy passes on what the server writes to its stderr.
func (*errs) copy(t *relay) { t.copy(t.serverErr, t.clientErr, stderrSide, t.fromStderr, nil) }

// move does nothing: what the server writes to its stderr and to its stdout is in no order here.
func (*errs) move(*relay) bool { return true }

// hungUp reports false.
func (e *end) hungUp() bool { return false }

// gone reports false: here only a write tells that nobody reads any more.
func (e *end) gone() bool { return false }

// leave calls closing: who else reads cannot be seen here.
func leave(_ *os.File, closing func()) { closing() }

// unread knows nothing here.
func unread(*os.File) int { return 0 }
