//go:build !unix

package deck

import "syscall"

func signalName(s syscall.Signal) string { return s.String() }

func isEIO(error) bool { return false }
