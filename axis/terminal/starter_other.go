//go:build !linux && !darwin

package terminal

import (
	"context"
	"errors"
	"runtime"
	"syscall"
)

// osStarter starts nothing on this system.
type osStarter struct{}

// Start implements Starter.
func (osStarter) Start(context.Context, *Program) (Process, error) { return nil, errNoSessions }

var errNoSessions = errors.New("no program runs on a terminal of its own on " + runtime.GOOS)

func openSession(Size) (*PTY, error) { return nil, errNoSessions }

func (p *PTY) setSize(Size) error { return errNoSessions }

func (p *PTY) foreground() int { return 0 }

func signalGroup(int, syscall.Signal) error { return errNoSessions }

func signalName(sig syscall.Signal) string { return sig.String() }

// The signals of the end of a terminal's session, where there are none.
const (
	hangUpSignal   = syscall.SIGHUP
	continueSignal = syscall.Signal(0x12)
	resizeSignal   = syscall.Signal(0x1c)
)
