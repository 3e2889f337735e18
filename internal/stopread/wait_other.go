//go:build !unix

package stopread

const pollable = false

// wait is never called here.
func (r *Reader) wait() error { return nil }
