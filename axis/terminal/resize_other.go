//go:build !unix

package terminal

import "os"

// Follow does nothing where there is no SIGWINCH.
func (p *PTY) Follow(*os.File) (stop func()) { return func() {} }
