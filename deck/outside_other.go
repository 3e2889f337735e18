//go:build !unix

package deck

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// canRunOutside is false where a program's processes cannot be ended together.
const canRunOutside = false

func ownGroup(*exec.Cmd, int) {}

func signalGroup(int, syscall.Signal) error { return nil }

func killGroup(int) error { return nil }

func exitState(st *os.ProcessState) jail.Exit { return jail.Exit{Code: st.ExitCode()} }
