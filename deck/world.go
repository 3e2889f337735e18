package deck

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// A world is where one program runs: the jail or, where that was asked for by name, outside of it.
type world interface {
	// carry brings the program's network to us. Each part is handed to start, which runs it, and ends after quiet.
	carry(c *carried)
	// quiet says that the program has ended: nothing more comes.
	quiet()
	// Release starts the program, Wait waits for its end, Signal passes a signal on to it.
	Release() error
	Wait() (jail.Exit, error)
	Signal(sig syscall.Signal) error
	// Stopped tells the signal that stopped the program; nil where that is not known. Foreground gives the program its
	// terminal, or takes it.
	Stopped() <-chan syscall.Signal
	Foreground(on bool) error
	// look calls f with a path under which the directory at path is as the program sees it.
	look(path string, f func(root string) error) error
	// openRoot opens the directory at path as the program sees it. errNotSeen says that what changes there cannot be told.
	openRoot(path string) (*os.Root, error)
	// holdMounts keeps what covers files in those directories until the closer is closed, after Close too. It may be nil.
	holdMounts() (io.Closer, error)
	// gaps lists what this world could not cover here, or lost.
	gaps() []string
	// Close ends everything that the program left behind and removes what it ran in.
	Close() error
}

// carried is what a world brings the network to.
type carried struct {
	srv     *network.Server
	dns     *network.DNS
	refused func(*jail.Refusal)
	start   func(what string, serve func() error)
}

// prepareWorld starts what every jail begins with, so that it comes up while the run is made ready; outside there is no such thing. A
// sure one is waited for: whoever writes what stays knows before whether there can be a jail. It must be closed.
func prepareWorld(proxy, sure bool) (*jail.Prepared, error) {
	if proxy {
		return nil, outsideAvailable()
	}
	p, err := jail.Prepare()
	if err != nil {
		return nil, err
	}
	if sure {
		if err := p.Check(); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// jailed is the world inside a jail.
type jailed struct{ *jail.Jail }

func newJailed(ctx context.Context, c *jail.Config) (world, error) {
	j, err := jail.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	return jailed{j}, nil
}

func (j jailed) carry(c *carried) {
	for _, l := range j.Listeners() {
		c.start(l.Addr().String(), func() error { return c.srv.Serve(l) })
	}
	packets, stream := j.DNS()
	c.start("DNS over UDP", func() error { return c.dns.ServeUDP(packets) })
	c.start("DNS over TCP", func() error { return c.dns.ServeTCP(stream) })
	c.start("refusals", func() error {
		for ref := range j.Refusals() {
			c.refused(&ref)
		}
		return nil
	})
}

func (j jailed) quiet() { j.StopNetwork() }

// look opens the directory inside the jail, where the program's world still stands.
func (j jailed) look(path string, f func(root string) error) error {
	root, err := j.OpenRoot(path)
	if err != nil {
		return fmt.Errorf("work tree inside the jail: %w", err)
	}
	defer root.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d", root.Fd()))
}

func (j jailed) gaps() []string {
	gaps := j.NotCovered()
	if n := j.RefusalsLost(); n > 0 {
		gaps = append(gaps[:len(gaps):len(gaps)], fmt.Sprintf("%d refused connections: they came faster than they could be recorded", n))
	}
	if n := j.SpawnsLost(); n > 0 {
		gaps = append(gaps[:len(gaps):len(gaps)], fmt.Sprintf("%s: %d programs that may have been talked with could not be looked at", gapMCP, n))
	}
	if n := j.Untraced(); n > 0 {
		gaps = append(gaps[:len(gaps):len(gaps)], fmt.Sprintf("%s: %d programs were debugged, and asked the kernel", jail.InputGap, n))
	}
	if n := j.Unnamed(); n > 0 {
		gaps = append(gaps[:len(gaps):len(gaps)], fmt.Sprintf("%d calls that may have changed files: which ones could not be told", n))
	}
	return gaps
}
