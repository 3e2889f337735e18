//go:build !linux

package process

import "os/exec"

// awaitExit waits for the end of cmd and reaps it: there is no other way to wait.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }
