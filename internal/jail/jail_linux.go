package jail

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/sys/unix"
)

// A Jail is one program in its namespaces, or the place that it left when it ended. Close it always. Its methods may be
// called from several goroutines.
type Jail struct {
	log         *slog.Logger
	cmd         *exec.Cmd // the init
	begun       bool      // it has said so
	ended       error     // how it did, once tasks have
	stderr      tail      // the init's: why it ended, when it should not have
	ctl, exec   *control
	stopContext func() bool
	tasks       sync.WaitGroup // the goroutines that end with the init

	listeners  []net.Listener
	dnsPackets net.PacketConn
	dnsStream  net.Listener
	notCovered []string
	refusals   *refusals
	stopOnce   sync.Once
	notify     *notifier
	connector  *connector
	watcher    Watcher
	places     []place // of the watcher
	watch      *watch  // nil: nobody watches, or nobody can
	blind      error   // why nothing is watched although a Watcher is there
	watchOnce  sync.Once
	toldSpawns SpawnWatcher
	streams    []*os.File // the program's, until the jail stands
	spawns     *spawns    // nil: nobody is told, or nobody can be
	deaf       error      // why nobody is told although a SpawnWatcher is there
	given      Inputs
	shifted    bool
	inputs     *inputs // nil: the kernel answers

	// Set before exited is closed, by the goroutine that reads the control socket.
	exit    Exit
	exitErr error
	exited  chan struct{}

	openMu  sync.Mutex   // one ask at a time
	answers chan rootMsg // to ask; closed when the init is gone

	stopped chan syscall.Signal
}

type rootMsg struct {
	m   *message
	fds []int
}

func newJail() *Jail {
	return &Jail{
		log:      logger(nil),
		refusals: newRefusals(),
		exited:   make(chan struct{}),
		answers:  make(chan rootMsg, 1),
		stopped:  make(chan syscall.Signal, 16),
	}
}

// kill ends everything inside.
func (j *Jail) kill() {
	j.spawns.left(false)
	j.cmd.Process.Kill()
}

// await takes over what the stages make and returns once the exec stage is ready to become the program.
func (j *Jail) await() error {
	if err := j.awaitBegun(); err != nil {
		return err
	}
	m, fds, err := j.ctl.expect(msgReady)
	if err != nil {
		return err
	}
	j.notCovered = m.NotCovered
	if err := j.takeSockets(fds, m.Listeners); err != nil {
		return err
	}
	j.startWatch()
	j.startSpawns()
	j.tasks.Go(j.read)
	if err := j.exec.send(&message{Kind: msgPrepare, Notified: j.notified()}); err != nil {
		return err
	}
	_, fds, err = j.exec.expect(msgListener)
	if err != nil {
		return err
	}
	if err := j.serveNotifications(fds); err != nil {
		return err
	}
	if _, _, err = j.exec.expect(msgReady); err != nil {
		return err
	}
	j.refusals.arm()
	if j.watch != nil {
		j.blind = j.watch.arm()
	}
	if j.blind != nil {
		j.notCovered = append(j.notCovered, notWatched(j.blind))
	}
	if j.spawns != nil {
		j.deaf = j.spawns.arm()
	}
	if j.deaf != nil {
		j.notCovered = append(j.notCovered, noSpawns(j.deaf)...)
	}
	return nil
}

// awaitBegun waits, once, until the init has what every jail needs.
func (j *Jail) awaitBegun() error {
	if j.begun {
		return nil
	}
	_, _, err := j.ctl.expect(msgBegun)
	j.begun = err == nil
	return err
}

// startWatch prepares the watch, if one is wanted.
func (j *Jail) startWatch() {
	if j.watcher == nil {
		return
	}
	j.watch, j.blind = newWatch(j.watcher, j.cmd.Process.Pid, j.places)
}

// startSpawns prepares what finds the spawns that a watcher is told of, if there is one.
func (j *Jail) startSpawns() {
	if j.toldSpawns == nil && j.given == nil {
		return
	}
	j.spawns, j.deaf = newSpawns(j.toldSpawns, j.cmd.Process.Pid, j.streams)
	j.streams = nil
	if j.given != nil && j.spawns != nil {
		j.inputs = newInputs(j.given, j.spawns, j.countPIDs)
	}
}

// countPIDs makes the next process inside the first one, whatever numbers our own stages took. Where that cannot be they stay as they
// come.
func (j *Jail) countPIDs() {
	if fd, err := j.ask(&message{Kind: msgOpen, Path: pidsInside}); err == nil {
		unix.Close(fd)
	}
}

func (j *Jail) notified() notified {
	return notified{Watch: j.watch != nil, Spawns: j.spawns != nil, Inputs: j.inputs != nil, Ticks: j.inputs != nil && askingWall() != nil, Waits: j.inputs != nil && j.shifted}
}

// serveNotifications takes over the one descriptor in fds.
func (j *Jail) serveNotifications(fds []int) error {
	if len(fds) != 1 {
		closeFDs(fds)
		return fmt.Errorf("jail: %d descriptors with the notification listener", len(fds))
	}
	var err error
	j.notify, err = newNotifier(fds[0], j.refusals.add, j.connector, j.watch, j.spawns, j.inputs)
	return err
}

// read receives what the init says until it is gone. It ends with the control socket, at the latest in Close.
func (j *Jail) read() {
	defer close(j.answers)
	for {
		m, fds, err := j.ctl.recv()
		if err != nil {
			j.setExit(Exit{}, err)
			return
		}
		switch m.Kind {
		case msgOver:
			j.spawns.left(true)
			j.ctl.send(&message{Kind: msgKill}) // an error means that the init is gone
		case msgExit:
			j.setExit(m.Exit, nil)
		case msgStopped:
			select {
			case j.stopped <- syscall.Signal(m.Signal):
			default: // nobody listens
			}
		case msgRoot, msgFailed:
			j.answers <- rootMsg{m, fds}
		default:
			closeFDs(fds)
		}
	}
}

func (j *Jail) setExit(e Exit, err error) {
	select {
	case <-j.exited:
		return
	default:
	}
	j.exit, j.exitErr = e, err
	close(j.exited)
}

// Listeners returns the TCP listeners inside: 80, 443, then those of Config.Ports. The LocalAddr of a connection that
// they accept is the address that the program dialled.
func (j *Jail) Listeners() []net.Listener { return j.listeners }

// DNS returns what the program's name queries reach. An address that ReadFrom returned makes WriteTo answer from the
// address that the query was sent to.
func (j *Jail) DNS() (net.PacketConn, net.Listener) { return j.dnsPackets, j.dnsStream }

// Refusals returns what the program tried and the jail refused, as it happens. The channel is closed by StopNetwork. A
// reader that falls far behind loses some, which RefusalsLost counts.
func (j *Jail) Refusals() <-chan Refusal { return j.refusals.out }

// RefusalsLost returns how many refusals found no room in the channel of Refusals.
func (j *Jail) RefusalsLost() int64 { return j.refusals.lost.Load() }

// NotCovered lists what this system could not give to the jail, in words for a person: evidence that is not seen, never
// a gap in what confines.
func (j *Jail) NotCovered() []string { return j.notCovered }

// Unnamed returns how many calls went on although they may have changed files that could not be named: the Watcher was
// not told. Their programs hide their memory, or made mount namespaces in which it cannot be said what a path means.
func (j *Jail) Unnamed() int64 {
	if j.watch == nil {
		return 0
	}
	return j.watch.unnamed.Load()
}

// Untraced returns how many programs started whose time and randomness the kernel answers for, although there are Inputs: a
// debugger inside had them.
func (j *Jail) Untraced() int64 {
	if j.inputs == nil {
		return 0
	}
	return j.inputs.untraced.Load()
}

// StopNetwork closes the listeners and the DNS sockets, reads the refusals that are left and closes their channel.
func (j *Jail) StopNetwork() {
	j.stopOnce.Do(func() {
		for _, l := range j.listeners {
			l.Close()
		}
		if j.dnsPackets != nil {
			j.dnsPackets.Close()
		}
		if j.dnsStream != nil {
			j.dnsStream.Close()
		}
		if j.connector != nil && j.connector.report != nil {
			j.connector.tellMissed()
		}
		j.refusals.stop()
	})
}

// Release makes the program start and returns when it has. The error is an *ExecError when its file cannot be executed:
// Wait then reports exit code 127.
func (j *Jail) Release() error {
	if err := j.exec.send(&message{Kind: msgGo}); err != nil {
		return j.explain(err)
	}
	m, fds, err := j.exec.recv()
	closeFDs(fds)
	switch {
	case errors.Is(err, io.EOF): // its end is closed by execve
		return nil
	case err != nil:
		return j.explain(err)
	case m.Kind == msgFailed && m.Failure != nil:
		return m.Failure.err()
	}
	return fmt.Errorf("jail: message %d after release", m.Kind)
}

// Signal sends sig to the program. What a terminal sends (SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH) goes to
// its process group, anything else to the program alone.
func (j *Jail) Signal(sig syscall.Signal) error {
	return j.ctl.send(&message{Kind: msgSignal, Signal: int(sig)})
}

// Wait returns how the program ended, once nothing that it started is left either. The mounts stay for OpenRoot until
// Close. An error means that the jail was ended first.
func (j *Jail) Wait() (Exit, error) {
	<-j.exited
	if j.exitErr != nil {
		return Exit{}, j.explain(j.exitErr)
	}
	return j.exit, nil
}

// OpenRoot opens a directory as the program sees it, after its end too, until Close. What lies in it is the program's:
// walk it through os.OpenRoot of /proc/self/fd/N, or a symbolic link leads out.
func (j *Jail) OpenRoot(path string) (*os.File, error) {
	fd, err := j.ask(&message{Kind: msgOpen, Path: path})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ask has the init open something, and returns it.
func (j *Jail) ask(m *message, fds ...int) (int, error) {
	j.openMu.Lock()
	defer j.openMu.Unlock()
	if err := j.ctl.send(m, fds...); err != nil {
		return -1, j.explain(err)
	}
	a, ok := <-j.answers
	switch {
	case !ok:
		return -1, j.explain(io.EOF)
	case a.m.Kind == msgFailed && a.m.Failure != nil:
		return -1, a.m.Failure.err()
	case len(a.fds) != 1:
		closeFDs(a.fds)
		return -1, fmt.Errorf("jail: %d descriptors for message %d", len(a.fds), m.Kind)
	}
	return a.fds[0], nil
}

// diagIn tells of the Unix sockets in a network namespace that the program made.
func (j *Jail) diagIn(ns int) (*diag, error) {
	fd, err := j.ask(&message{Kind: msgDiag}, ns)
	if err != nil {
		return nil, err
	}
	return &diag{fd: fd}, nil
}

// HoldMounts keeps the mounts inside until what it returns is closed, after Close too: until then directories of OpenRoot
// show what the program saw. Without it the end of the jail takes away what is mounted in them, and so uncovers what was
// masked.
func (j *Jail) HoldMounts() (io.Closer, error) {
	return j.OpenRoot(mountsInside)
}

// Close ends everything inside and returns when it is gone, its mounts with it, and so are the functions of the Watcher. Directories from OpenRoot stay readable
// until they are closed.
func (j *Jail) Close() error {
	if j.stopContext != nil {
		j.stopContext()
	}
	j.kill()
	j.tasks.Wait()
	j.log.Debug("jail's init ended", "err", j.ended, "stderr", j.stderr.String())
	j.StopNetwork()
	j.stopWatch()
	j.closeSockets()
	return nil
}

// stopWatch ends the notifier, and then what it asks, once; a start that failed may have made some of it only.
func (j *Jail) stopWatch() {
	j.watchOnce.Do(func() {
		switch {
		case j.notify != nil:
			j.notify.close() // and the connector
		case j.connector != nil:
			j.connector.close()
		}
		if j.watch != nil {
			j.watch.close()
		}
		if j.spawns != nil {
			j.spawns.close()
		}
	})
}

func (j *Jail) closeSockets() {
	for _, c := range []*control{j.ctl, j.exec} {
		if c != nil {
			c.Close()
		}
	}
}

// explain adds to an error of the control socket why the init is gone.
func (j *Jail) explain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed) {
		if why := j.stderr.String(); why != "" {
			return fmt.Errorf("jail: its init ended: %s", why)
		}
		return errors.New("jail: its init ended")
	}
	return diagnoseSetup(err)
}

// MountsBelow reports whether something is mounted below dir on the host, so that an overlay of dir may have to be split.
func MountsBelow(dir string) (bool, error) { return mount.Below(dir) }

// A tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4 << 10 // bytes

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf) - tailSize; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
