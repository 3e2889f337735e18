//go:build !unix

package deck

import "syscall"

// The signals of jobs and terminals, which are not to be had here.
const (
	sigHUP = syscall.SIGHUP

	sigTSTP syscall.Signal = -iota
	sigSTOP
	sigTTIN
	sigTTOU
	sigCONT
	sigWINCH
)

func signalName(s syscall.Signal) string { return s.String() }

// signalNamed is the signal whose signalName is name; 0 for none.
func signalNamed(string) syscall.Signal { return 0 }

func isEIO(error) bool { return false }
