//go:build !linux

package mcp

// hungUp reports false.
func (e *end) hungUp() bool { return false }

// gone reports false: here only a write tells that nobody reads any more.
func (e *end) gone() bool { return false }
