//go:build !unix

package terminal

import "os"

// Follow does nothing where there is no SIGWINCH.
func Follow(*os.File, func(Size)) (stop func()) { return func() {} }
