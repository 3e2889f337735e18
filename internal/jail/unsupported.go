//go:build !linux

package jail

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
)

// Jail is a running jail; on this system there is none, and so nobody calls its methods.
type Jail struct{ methods }

type methods interface {
	Listeners() []net.Listener
	DNS() (net.PacketConn, net.Listener)
	Refusals() <-chan Refusal
	RefusalsLost() int64
	SpawnsLost() int64
	Untraced() int64
	Unnamed() int64
	NotCovered() []string
	StopNetwork()
	Release() error
	Signal(sig syscall.Signal) error
	Stopped() <-chan syscall.Signal
	Foreground(on bool) error
	Wait() (Exit, error)
	OpenRoot(path string) (*os.File, error)
	HoldMounts() (io.Closer, error)
	Close() error
}

// Available says that the jail needs Linux.
func Available() error {
	return &UnavailableError{Reason: "the jail needs Linux namespaces, this is " + runtime.GOOS}
}

// Enter does nothing on this system.
func Enter() {}

// A Prepared is never made here.
type Prepared struct{}

// NotNeeded does nothing.
func NotNeeded() {}

// Prepare fails with an *UnavailableError.
func Prepare() (*Prepared, error) { return nil, Available() }

// Check does nothing.
func (*Prepared) Check() error { return nil }

// Close does nothing.
func (*Prepared) Close() error { return nil }

// Start fails with an *UnavailableError.
func Start(context.Context, *Config) (*Jail, error) { return nil, Available() }

// MountsBelow fails with an *UnavailableError.
func MountsBelow() (func(dir string) bool, error) { return nil, Available() }

// Probe returns the one check that fails here.
func Probe() []Check {
	return []Check{{Name: "namespaces", Detail: Available().Error(), Cost: "nothing can be recorded or replayed in a jail"}}
}
