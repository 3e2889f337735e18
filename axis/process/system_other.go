//go:build !unix

package process

import (
	"os"
	"os/exec"
	"runtime"
)

const onWindows = runtime.GOOS == "windows"

func ownGroup(*exec.Cmd) {}

// endGroup ends the command itself, where it has not ended.
func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// resultOf is how a process ended.
func resultOf(st *os.ProcessState) *Result { return &Result{ExitCode: st.ExitCode()} }
