package deck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// A world is where one program runs: the jail or, where that was asked for by name, outside of it.
type world interface {
	// carry brings the program's network to us. Each part is handed to start, which runs it, and ends after StopNetwork.
	carry(c *carried)
	// StopNetwork says that the program has ended: nothing more comes.
	StopNetwork()
	// Release starts the program, Wait waits for its end, Signal passes a signal on to it.
	Release() error
	Wait() (jail.Exit, error)
	Signal(sig syscall.Signal) error
	// Stopped tells the signal that stopped the program; nil where that is not known. Foreground gives the program its
	// terminal, or takes it.
	Stopped() <-chan syscall.Signal
	Foreground(on bool) error
	// OpenRoot opens the directory at path as the program sees it. errNotSeen says that what changes there cannot be told.
	OpenRoot(path string) (*os.File, error)
	// HoldMounts keeps what covers files in those directories until the closer is closed, after Close too. It may be nil.
	HoldMounts() (io.Closer, error)
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
		jail.NotNeeded()
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

func (j jailed) gaps() []string {
	gaps := slices.Clone(j.NotCovered())
	for _, g := range []struct {
		text string
		n    int
	}{
		{"%d refused connections: they came faster than they could be recorded", int(j.RefusalsLost())},
		{gapMCP + ": %d programs that may have been talked with could not be looked at", int(j.SpawnsLost())},
		{jail.InputGap + ": %d programs were debugged, and asked the kernel", int(j.Untraced())},
		{"%d calls that may have changed files: which ones could not be told", int(j.Unnamed())},
	} {
		if g.n > 0 {
			gaps = append(gaps, fmt.Sprintf(g.text, g.n))
		}
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

// sweep removes what killed commands left, once: directories for temporary files are full of what is others'.
var sweep = sync.OnceFunc(library.Sweep)

// newScratch makes a scratch outside dirs, and removes those that killed runs left. It must be removed.
func newScratch(id string, dirs []string) (*scratch, error) {
	base, err := scratchBase(dirs)
	if err != nil {
		return nil, err
	}
	sweep()
	temp, err := recording.NewTemp(base, id+"-")
	return &scratch{temp}, err
}

// removeAfter ends what a run was prepared with, and then deletes its scratch: while the kernel takes the mounts of layers apart, who removes what
// they hold has to wait for it, and spins.
func (s *scratch) removeAfter(prepared *jail.Prepared) {
	prepared.Close()
	s.remove()
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

// outsideNetGaps, outsideGaps and outsideFileGaps are what a run outside the jail does not cover: its ledger says so, and
// with it every verdict over it.
var (
	outsideNetGaps = []string{
		"what does not heed HTTP_PROXY (the loopback, raw sockets, UDP, DNS; Node before 24)",
	}
	outsideGaps = []string{
		"confinement (run outside the jail; processes that left its group may outlive it)",
	}
	outsideMCPGaps = []string{
		gapMCP + " (put `tapedeck mcp wrap --` before a server in the client's configuration, and it is recorded by itself)",
	}
	outsideFileGaps = []string{"what a replay writes outside the work tree (it stays on the disk)"}
)

// outsideNotes are what a verdict over a replay outside the jail says.
var outsideNotes = []string{
	"replayed outside the jail: what did not heed the proxy reached the real network, and writes outside the work tree the disk",
}

// An outside is the world without a jail: the program runs on the machine as it is, with a proxy and the recorder's
// certificates in its environment. It sees what heeds these, and confines nothing.
type outside struct {
	cmd   *exec.Cmd
	pid   atomic.Int64 // of the program, once it has started: its terminal may go while it starts
	proxy net.Listener
	temp  *recording.Temp // holds the certificates; nil before it is made
	tree  string          // the work tree, the one directory that is looked at before and after
}

// newOutside makes the proxy's listener, on the loopback. The program starts with Release.
func newOutside(ctx context.Context, r *run, st *streams, ca *network.CA) (_ world, err error) {
	o := &outside{tree: r.s.roots.Tree}
	defer func() {
		if err != nil {
			o.remove()
		}
	}()
	if o.temp, err = recording.NewTemp(os.TempDir(), library.ProxyPrefix); err != nil {
		return nil, err
	}
	bundle := filepath.Join(o.temp.Dir, "ca.pem")
	if err = os.WriteFile(bundle, ca.Bundle(), 0o600); err != nil {
		return nil, err
	}
	if o.proxy, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	o.cmd = exec.CommandContext(ctx, r.path)
	o.cmd.Args, o.cmd.Dir = r.argv, r.dir
	o.cmd.Env = append(program.Env(r.env, bundle), network.ProxyEnv(o.proxy.Addr().String(), r.loopback)...)
	o.cmd.Stdin, o.cmd.Stdout, o.cmd.Stderr = st.program[0], st.program[1], st.program[2]
	o.cmd.Cancel = o.killAll
	procgroup.Own(o.cmd, st.ttyIndex())
	return o, nil
}

func (o *outside) carry(c *carried) {
	c.start("proxy", func() error { return c.srv.ServeProxy(o.proxy) })
}

// StopNetwork has nothing to stop: the server closes the listener.
func (o *outside) StopNetwork() {}

// Release starts the program.
func (o *outside) Release() error {
	err := o.cmd.Start()
	if err == nil {
		o.pid.Store(int64(o.cmd.Process.Pid))
	}
	return err
}

// Wait waits for the program and ends what it left in its process group, as the jail does.
func (o *outside) Wait() (jail.Exit, error) {
	err := o.cmd.Wait()
	if errKill := o.killAll(); errKill != nil {
		return jail.Exit{}, errKill
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return jail.Exit{}, err
	}
	return procgroup.ExitOf(o.cmd.ProcessState), nil
}

func (o *outside) Signal(sig syscall.Signal) error {
	pid := int(o.pid.Load())
	if pid == 0 { // not started: a group 0 would be our own
		return os.ErrProcessDone
	}
	return procgroup.Signal(pid, sig)
}

func (o *outside) Stopped() <-chan syscall.Signal { return nil }

func (o *outside) Foreground(bool) error { return nil } // it has it always

func (o *outside) killAll() error { return procgroup.Kill(o.cmd.Process.Pid) }

// HoldMounts has nothing to hold: nothing is mounted.
func (o *outside) HoldMounts() (io.Closer, error) { return nil, nil }

func (o *outside) OpenRoot(path string) (*os.File, error) {
	if path != o.tree {
		return nil, errNotSeen
	}
	return os.Open(path)
}

func (o *outside) gaps() []string { return nil } // the ledger has them: outsideGaps

// Close removes what the program ran with. A program that never started left nothing.
func (o *outside) Close() error {
	var err error
	if o.cmd.Process != nil && o.cmd.ProcessState == nil {
		err = o.killAll()
		o.cmd.Wait() // it was killed
	}
	return errors.Join(err, o.remove())
}

func (o *outside) remove() error {
	if o.proxy != nil {
		o.proxy.Close()
	}
	if o.temp == nil {
		return nil
	}
	return o.temp.Remove()
}

// NothingCame is what a recording outside the jail says of itself in which no exchange is, and why a replay of it outside the
// jail is not compared: such a program asked nothing, or asked past the proxy, and then it would again.
const NothingCame = "NOTHING CAME THROUGH THE PROXY: what the program asked the network for went there unrecorded (Node before 24 heeds no " +
	"proxy; a server on this host is recorded where it is named, as in --upstream 127.0.0.1:1234=http://127.0.0.1:1234)"

// outsideAvailable reports whether programs can be run outside the jail on this system.
func outsideAvailable() error {
	if procgroup.CanRunOutside {
		return nil
	}
	return fmt.Errorf("--proxy needs a Unix system, this is %s", runtime.GOOS)
}

// checkOutside refuses the options that need the jail.
func checkOutside(o *RecordOptions) error {
	var needs []string
	if o.Isolated {
		needs = append(needs, "--isolated")
	}
	if len(o.Writable) > 0 {
		needs = append(needs, "--writable")
	}
	if len(needs) > 0 {
		return fmt.Errorf("%s needs the jail: leave it out, or --proxy", strings.Join(needs, " and "))
	}
	return nil
}

// gapsOutside are what a run outside the jail does not cover, by axis.
func gapsOutside() map[string][]string {
	net := outsideNetGaps
	if runtime.GOOS == "darwin" {
		net = append(net[:len(net):len(net)], "HTTPS of Go programs, which trust the keychain alone on macOS")
	}
	return map[string][]string{"network": net, "process": outsideGaps, "files": outsideFileGaps, recording.AxisMCP: outsideMCPGaps}
}

// ledgerFor returns axes as they are of a run outside the jail, or inside.
func ledgerFor(axes map[string]recording.Axis, outside bool) map[string]recording.Axis {
	axes = maps.Clone(axes)
	for name, gaps := range gapsOutside() {
		a := axes[name]
		a.NotCovered = slices.DeleteFunc(slices.Clone(a.NotCovered), func(g string) bool { return g == NothingCame || slices.Contains(gaps, g) })
		if outside {
			a.NotCovered = slices.Concat(gaps, a.NotCovered)
		}
		axes[name] = a
	}
	return axes
}

// A moved is the recorded work tree in a directory of its own, where a replay outside the jail runs: without mounts no
// path can show anything else than what the disk has there. The zero moved moves nothing.
type moved struct {
	from, to string // of the work tree
}

// path is where a recorded path is now.
func (m moved) path(p string) string {
	if m.to == "" || !recording.Within(p, m.from) {
		return p
	}
	return m.to + strings.TrimPrefix(p, m.from)
}

// recorded is where a path of now was recorded.
func (m moved) recorded(p string) string {
	if m.to == "" {
		return p
	}
	return moved{m.to, m.from}.path(p)
}

// env is env with the working directory where it is now.
func (m moved) env(env []string) []string {
	out := slices.Clone(env)
	for i, kv := range env {
		if dir, ok := strings.CutPrefix(kv, "PWD="); ok {
			out[i] = "PWD=" + m.path(dir)
		}
	}
	return out
}

// notes lists the arguments and variables that still name the work tree where it was recorded.
func (m moved) notes(argv, env []string) []string {
	if m.to == "" {
		return nil
	}
	var names []string
	for i, a := range argv[1:] {
		if strings.Contains(a, m.from) {
			names = append(names, fmt.Sprintf("argument %d", i+1))
		}
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); name != "OLDPWD" && strings.Contains(value, m.from) && !strings.Contains(value, m.to) {
			names = append(names, "variable "+name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s names %s: there the program met the disk as it is now, not the recorded tree", strings.Join(names, ", "), m.from)}
}
