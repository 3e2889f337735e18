package stage

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/launch"
	"golang.org/x/sys/unix"
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
	if isInit(os.Args) {
		runInit()
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

// isInit tells the init from a program that somebody merely called by its name: it has its control socket.
func isInit(args []string) bool {
	if len(args) != 1 || args[0] != launch.InitName {
		return false
	}
	kind, err := unix.GetsockoptInt(launch.ControlFD, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_SEQPACKET && os.Getpid() == 1
}
