//go:build !unix

package procgroup

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// CanRunOutside is false where a program's processes cannot be ended together.
const CanRunOutside = false

// Own does nothing here.
func Own(*exec.Cmd, int) {}

// Signal does nothing here.
func Signal(int, syscall.Signal) error { return nil }

// Kill does nothing here.
func Kill(int) error { return nil }

// ExitOf is how a program ended.
func ExitOf(st *os.ProcessState) jail.Exit { return jail.Exit{Code: st.ExitCode()} }

// The signals of jobs and terminals, which are not to be had here.
const (
	SigHUP = syscall.SIGHUP

	SigTSTP syscall.Signal = -iota
	SigSTOP
	SigTTIN
	SigTTOU
	SigCONT
	SigWINCH
)

// Name returns a name of the signal.
func Name(s syscall.Signal) string { return s.String() }

// Named is the signal whose Name is name; 0 for none.
func Named(string) syscall.Signal { return 0 }

// IsEIO knows no such error.
func IsEIO(error) bool { return false }

// Passed are the signals to a recorder that go to its program; BrokenPipe is that of a pipe that nobody reads.
var (
	Passed     = []os.Signal{os.Interrupt}
	BrokenPipe []os.Signal
)
