package deck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
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

// scratchBase is the directory that holds the layers of all runs of this user, outside every one of dirs: an overlay's
// upper layer must not lie in its lower one.
func scratchBase(dirs []string) (string, error) {
	name := fmt.Sprintf("tapedeck-%d", os.Getuid())
	for _, root := range library.ScratchRoots {
		base := filepath.Join(root, name)
		if slices.ContainsFunc(dirs, func(d string) bool { return recording.Within(base, d) }) {
			continue
		}
		if err := os.MkdirAll(base, 0o700); err != nil {
			continue
		}
		if st, err := os.Lstat(base); err == nil && st.IsDir() && recording.OwnedByUs(st) {
			return base, os.Chmod(base, 0o700)
		}
	}
	return "", fmt.Errorf("no place for layers outside %s: tried %s", strings.Join(dirs, ", "), strings.Join(library.ScratchRoots, ", "))
}

// A scratch is a directory for the layers of one run. Its lock is the kernel's: it goes with the process, so that what a
// killed run left is known by it.
type scratch struct{ *recording.Temp }

// newScratch makes a scratch outside dirs, and removes those that killed runs left. It must be removed.
func newScratch(id string, dirs []string) (*scratch, error) {
	base, err := scratchBase(dirs)
	if err != nil {
		return nil, err
	}
	library.Sweep()
	temp, err := recording.NewTemp(base, id+"-")
	return &scratch{temp}, err
}

// remove deletes the scratch; a nil one is none.
func (s *scratch) remove() {
	if s != nil && s.Temp != nil {
		library.OpenLayers(s.Dir)
		_ = s.Remove() // what stays the next command removes
	}
}

// upperOf is the upper layer of the overlay whose layers lie in dir.
func upperOf(dir string) string { return filepath.Join(dir, "upper") }

// overlayOver returns the overlay that shows lowers at target and keeps what is written in scratch, which it makes.
func overlayOver(target, scratch string, lowers ...string) (jail.Overlay, error) {
	o := jail.Overlay{Target: target, Lowers: lowers, Upper: upperOf(scratch), Work: filepath.Join(scratch, "work")}
	err := errors.Join(os.MkdirAll(o.Upper, 0o700), os.MkdirAll(o.Work, 0o700))
	// The merged directory has the upper one's mode and time: they must be the target's own, or the program sees others.
	if st, errStat := os.Stat(target); err == nil && errStat == nil {
		err = errors.Join(os.Chmod(o.Upper, st.Mode().Perm()|st.Mode()&(os.ModeSticky|os.ModeSetgid)),
			os.Chtimes(o.Upper, time.Time{}, st.ModTime()))
	}
	return o, err
}

// over returns overlays over dirs, each of which shows its directory as it is.
func (s *scratch) over(dirs []string) (out []jail.Overlay, err error) {
	for i, d := range dirs {
		o, err := overlayOver(d, filepath.Join(s.Dir, strconv.Itoa(i)), d)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// masksFor lists what no program inside may see: the keys, and the user's runtime directory with its sockets.
func masksFor(config string, env []string) []string {
	out := []string{recording.ConfigDir(config)}
	if run := recording.Resolved(recording.Getenv(env, "XDG_RUNTIME_DIR")); run != "" {
		out = append(out, run)
	}
	return out
}
