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

// Jail is a running jail; on this system there is none.
type Jail struct{}

func unavailable() error {
	return &UnavailableError{Reason: "the jail needs Linux namespaces, this is " + runtime.GOOS}
}

// Enter does nothing on this system.
func Enter() {}

// A Prepared is never made here.
type Prepared struct{}

// NotNeeded does nothing.
func NotNeeded() {}

// Prepare fails with an *UnavailableError.
func Prepare() (*Prepared, error) { return nil, unavailable() }

// Check does nothing.
func (*Prepared) Check() error { return nil }

// Close does nothing.
func (*Prepared) Close() error { return nil }

// Available says that the jail needs Linux.
func Available() error { return unavailable() }

// Start fails with an *UnavailableError.
func Start(context.Context, *Config) (*Jail, error) { return nil, unavailable() }

// Probe returns the one check that fails here.
func Probe() []Check {
	return []Check{{Name: "namespaces", Detail: unavailable().Error(), Cost: "nothing can be recorded or replayed in a jail"}}
}

// Listeners returns none.
func (*Jail) Listeners() []net.Listener { return nil }

// DNS returns none.
func (*Jail) DNS() (net.PacketConn, net.Listener) { return nil, nil }

// Refusals returns a closed channel.
func (*Jail) Refusals() <-chan Refusal {
	c := make(chan Refusal)
	close(c)
	return c
}

// RefusalsLost returns 0.
func (*Jail) RefusalsLost() int64 { return 0 }

// SpawnsLost returns 0.
func (*Jail) SpawnsLost() int64 { return 0 }

// Untraced returns 0.
func (*Jail) Untraced() int64 { return 0 }

// Unnamed returns 0.
func (*Jail) Unnamed() int64 { return 0 }

// NotCovered returns none.
func (*Jail) NotCovered() []string { return nil }

// StopNetwork does nothing.
func (*Jail) StopNetwork() {}

// Release fails with an *UnavailableError.
func (*Jail) Release() error { return unavailable() }

// Signal fails with an *UnavailableError.
func (*Jail) Signal(syscall.Signal) error { return unavailable() }

// Stopped returns nil.
func (*Jail) Stopped() <-chan syscall.Signal { return nil }

// Foreground fails with an *UnavailableError.
func (*Jail) Foreground(bool) error { return unavailable() }

// Wait fails with an *UnavailableError.
func (*Jail) Wait() (Exit, error) { return Exit{}, unavailable() }

// MountsBelow fails with an *UnavailableError.
func MountsBelow(string) (bool, error) { return false, unavailable() }

// OpenRoot fails with an *UnavailableError.
func (*Jail) OpenRoot(string) (*os.File, error) { return nil, unavailable() }

// HoldMounts fails with an *UnavailableError.
func (*Jail) HoldMounts() (io.Closer, error) { return nil, unavailable() }

// Close does nothing.
func (*Jail) Close() error { return nil }
