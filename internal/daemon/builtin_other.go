//go:build !unix

package daemon

import (
	"os"
	"os/exec"
)

func group(*exec.Cmd)    {}
func endGroup(*exec.Cmd) {}

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
