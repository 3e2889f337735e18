//go:build !unix

package process

// pollable says that wait can be used.
const pollable = false

// wait is never called here.
func (in *Input) wait() error { return nil }
