package stage

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// The names that our own executable is started by when it is a stage of a jail: the recorder starts the init, and that the other.
const (
	InitName = "tapedeck-init"
	execName = "tapedeck-exec"
)

// Descriptors that a stage inherits.
const (
	controlFD = 3

	submountFD = 4 // the init alone: what was mounted below overlays, and behind

	// The exec stage alone.
	execSpecFD = 4
	lastPIDFD  = 5
)

var (
	// Entered says that Enter was called.
	Entered atomic.Bool
	// IgnoredAtStart is written by Enter alone, before anything else runs.
	IgnoredAtStart []syscall.Signal
)

// In a process that Start started, init runs the stage and never returns. A stage is nothing else: what the other packages of the
// program set up for themselves, which takes longer than a stage does, is not waited for.
func init() {
	if stage := stageOf(os.Args); stage != nil {
		stage()
		os.Exit(1)
	}
}

// Enter must be the first call of main, and of TestMain where a test starts a jail.
func Enter() {
	// The only two that a Go program leaves ignored where its caller ignored them.
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			IgnoredAtStart = append(IgnoredAtStart, s)
		}
	}
	Entered.Store(true)
}

// stageOf tells a stage from a program that somebody merely called by a stage's name: a stage has its control socket.
func stageOf(args []string) func() {
	if len(args) != 1 || args[0] != InitName && args[0] != execName {
		return nil
	}
	if kind, err := unix.GetsockoptInt(controlFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
		return nil
	}
	if args[0] == execName {
		return runExec
	}
	if os.Getpid() != 1 {
		return nil
	}
	return runInit
}
