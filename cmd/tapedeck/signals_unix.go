//go:build unix

package main

import (
	"os"
	"syscall"
)

// passedSignals go to the recorded program.
var passedSignals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

var brokenPipe = []os.Signal{syscall.SIGPIPE}
