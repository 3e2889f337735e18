package jail

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/launch"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"github.com/tapedeck-dev/tapedeck/internal/jail/stage"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// A Jail is one program in its namespaces, or the place that it left when it ended. Close it always. Its methods may be
// called from several goroutines.
type Jail struct {
	log         *slog.Logger
	init        *launch.Init
	prepared    *Prepared // that it was made from; nil for none
	begun       bool      // it has said so
	stderr      tail      // the init's: why it ended, when it should not have
	ctl         *stage.Control
	exec        *stage.Exec
	stopContext func() bool
	tasks       sync.WaitGroup // the goroutines that end with the init

	network    *network.Taken
	notCovered []string
	refusals   *refusals
	stopOnce   sync.Once
	closeOnce  sync.Once
	wanted     wanted
	table      *process.Table
	supervisor supervisor

	// Set before exited is closed, by the goroutine that reads the control socket.
	exit    Exit
	exitErr error
	exited  chan struct{}

	openMu  sync.Mutex   // one ask at a time
	answers chan rootMsg // to ask; closed when the init is gone

	stopped chan syscall.Signal
}

type rootMsg struct {
	m   *stage.Message
	fds []int
}

// wanted is what a Config asks for that is there only once the init is.
type wanted struct {
	began   time.Time
	files   Watcher
	plan    *mount.Plan
	spawns  SpawnWatcher
	streams []*os.File // the program's, until the jail stands
	inputs  Inputs
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
	if j.table != nil {
		j.table.Killing(false)
	}
	j.init.Kill()
}

// await takes over what the stages make and returns once the exec stage is ready to become the program.
func (j *Jail) await() error {
	if err := j.awaitBegun(); err != nil {
		return err
	}
	m, fds, err := j.ctl.Expect(stage.MsgReady)
	if err != nil {
		return err
	}
	j.notCovered = m.NotCovered
	if j.network, err = network.Take(fds, m.Listeners); err != nil {
		return err
	}
	if err := j.prepare(); err != nil {
		return err
	}
	j.tasks.Go(j.read)
	fds, err = j.exec.Expect(stage.StepListener)
	if err != nil {
		return err
	}
	if len(fds) != 1 {
		inspect.CloseAll(fds)
		return fmt.Errorf("jail: %d descriptors with the notification listener", len(fds))
	}
	if err := j.supervisor.serve(fds[0]); err != nil {
		return err
	}
	if _, err = j.exec.Expect(stage.StepReady); err != nil {
		return err
	}
	if j.supervisor.files != nil {
		j.supervisor.files.Settle()
	}
	j.refusals.arm()
	return nil
}

// prepare makes what answers calls.
func (j *Jail) prepare() (err error) {
	s := &j.supervisor
	s.report = j.refusals.add
	j.refusals.sniff = j.network.Sniff(s.report)
	if s.connects, err = connect.New(j.network.Diag, j.diagIn, s.report); err != nil {
		return err
	}
	if j.table, err = process.NewTable(j.init.PID); err != nil {
		return &step.Error{Op: spawns.Step, Err: err}
	}
	w := &j.wanted
	if w.files != nil {
		if s.files, err = changes.New(w.files, j.table, w.plan, w.began); err != nil {
			return err
		}
	}
	if w.spawns != nil || w.inputs != nil {
		if s.spawns, err = spawns.New(w.spawns, j.table, w.streams, s.start); err != nil {
			return err
		}
		w.streams = nil
	}
	if w.inputs != nil {
		s.inputs = inputs.New(w.inputs, j.table, j.countPIDs, w.plan, j.OpenRoot)
	}
	return nil
}

// awaitBegun waits, once, until the init has what every jail needs.
func (j *Jail) awaitBegun() error {
	if j.begun {
		return nil
	}
	_, _, err := j.ctl.Expect(stage.MsgBegun)
	j.begun = err == nil
	return err
}

// countPIDs makes the next process inside the first one, whatever numbers our own stages took. Where that cannot be they stay as they
// come.
func (j *Jail) countPIDs() {
	if fd, err := j.ask(&stage.Message{Kind: stage.MsgOpen, Path: stage.PIDsInside}); err == nil {
		unix.Close(fd)
	}
}

// read receives what the init says until it is gone. It ends with the control socket, at the latest in Close.
func (j *Jail) read() {
	defer close(j.answers)
	for {
		m, fds, err := j.ctl.Recv()
		if err != nil {
			j.setExit(Exit{}, err)
			return
		}
		switch m.Kind {
		case stage.MsgOver:
			if j.table != nil {
				j.table.Killing(true)
			}
			j.ctl.Send(&stage.Message{Kind: stage.MsgKill}) // an error means that the init is gone
		case stage.MsgExit:
			j.setExit(m.Exit, nil)
		case stage.MsgStopped:
			select {
			case j.stopped <- syscall.Signal(m.Signal):
			default: // nobody listens
			}
		case stage.MsgRoot, stage.MsgFailed:
			j.answers <- rootMsg{m, fds}
		default:
			inspect.CloseAll(fds)
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
func (j *Jail) Listeners() []net.Listener { return j.network.Listeners }

// DNS returns what the program's name queries reach. An address that ReadFrom returned makes WriteTo answer from the
// address that the query was sent to.
func (j *Jail) DNS() (net.PacketConn, net.Listener) { return j.network.DNSPackets, j.network.DNSStream }

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
	if j.supervisor.files == nil {
		return 0
	}
	return j.supervisor.files.Unnamed.Load()
}

// Untraced returns how many programs started whose time and randomness the kernel answers for, although there are Inputs: a
// debugger inside had them.
func (j *Jail) Untraced() int64 {
	if j.supervisor.inputs == nil {
		return 0
	}
	return j.supervisor.inputs.Untraced.Load()
}

// StopNetwork closes the listeners and the DNS sockets, reads the refusals that are left and closes their channel.
func (j *Jail) StopNetwork() {
	j.stopOnce.Do(func() {
		if j.network != nil {
			j.network.Close()
		}
		if j.supervisor.connects != nil {
			j.supervisor.connects.TellMissed()
		}
		j.refusals.stop()
	})
}

// Release makes the program start and returns when it has. The error is an *ExecError when its file cannot be executed:
// Wait then reports exit code 127.
func (j *Jail) Release() error {
	err := j.exec.Go()
	var failed *ExecError
	if err == nil || errors.As(err, &failed) {
		return err
	}
	return j.explain(err)
}

// SpawnsLost returns how many execves went on although they may have been spawns that the SpawnWatcher is told of: their processes
// could not be looked at, or were too many.
func (j *Jail) SpawnsLost() int64 {
	if j.supervisor.spawns == nil {
		return 0
	}
	return j.supervisor.spawns.Lost.Load()
}

// Stopped returns the signal that stopped the program, each time that one did. Nobody continues it but who is told here.
func (j *Jail) Stopped() <-chan syscall.Signal { return j.stopped }

// Foreground gives the program's terminal to it, or takes it away: what reads it then, or changes its modes, is stopped by
// SIGTTIN or SIGTTOU. Without a terminal it does nothing.
func (j *Jail) Foreground(on bool) error {
	kind := stage.MsgBackground
	if on {
		kind = stage.MsgForeground
	}
	return j.ctl.Send(&stage.Message{Kind: kind})
}

// Signal sends sig to the program. What a terminal sends (SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH) goes to
// its process group, anything else to the program alone.
func (j *Jail) Signal(sig syscall.Signal) error {
	return j.ctl.Send(&stage.Message{Kind: stage.MsgSignal, Signal: int(sig)})
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
	fd, err := j.ask(&stage.Message{Kind: stage.MsgOpen, Path: path})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ask has the init open something, and returns it.
func (j *Jail) ask(m *stage.Message, fds ...int) (int, error) {
	j.openMu.Lock()
	defer j.openMu.Unlock()
	if err := j.ctl.Send(m, fds...); err != nil {
		return -1, j.explain(err)
	}
	a, ok := <-j.answers
	switch {
	case !ok:
		return -1, j.explain(io.EOF)
	case a.m.Kind == stage.MsgFailed && a.m.Failure != nil:
		return -1, a.m.Failure.Err()
	case len(a.fds) != 1:
		inspect.CloseAll(a.fds)
		return -1, fmt.Errorf("jail: %d descriptors for message %d", len(a.fds), m.Kind)
	}
	return a.fds[0], nil
}

// diagIn tells of the Unix sockets in a network namespace that the program made.
func (j *Jail) diagIn(ns int) (*connect.Diag, error) {
	fd, err := j.ask(&stage.Message{Kind: stage.MsgDiag}, ns)
	if err != nil {
		return nil, err
	}
	return connect.DiagOf(fd), nil
}

// HoldMounts keeps the mounts inside until what it returns is closed, after Close too: until then directories of OpenRoot
// show what the program saw. Without it the end of the jail takes away what is mounted in them, and so uncovers what was
// masked.
func (j *Jail) HoldMounts() (io.Closer, error) {
	return j.OpenRoot(stage.MountsInside)
}

// Close ends everything inside and returns when it is gone, its mounts with it, and so are the functions of the Watcher. Directories from
// OpenRoot stay readable until they are closed. Of a jail in which nothing is left but its init, which takes the kernel a while to take
// apart, that and the mounts are waited for by Close of the Prepared instead, if it was made from one.
func (j *Jail) Close() error {
	if j.stopContext != nil {
		j.stopContext()
	}
	j.kill()
	if !j.emptied() || !j.prepared.leave(j) {
		j.gone()
	}
	j.StopNetwork()
	j.closeOnce.Do(j.stopAnswering)
	j.closeSockets()
	return nil
}

// emptied reports whether the program has ended, and nothing that it started is left.
func (j *Jail) emptied() bool {
	select {
	case <-j.exited:
		return j.exitErr == nil
	default:
		return false
	}
}

// gone waits until the init, which was killed, has ended.
func (j *Jail) gone() {
	j.tasks.Wait()
	j.log.Debug("jail's init ended", "stderr", j.stderr.String())
}

// stopAnswering ends what answers calls, and then what it asks; a start that failed may have made some of it only.
func (j *Jail) stopAnswering() {
	j.supervisor.close()
	if j.table != nil {
		j.table.Close()
	}
}

func (j *Jail) closeSockets() {
	if j.ctl != nil {
		j.ctl.Close()
	}
	if j.exec != nil {
		j.exec.Close()
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

// MountsBelow returns what reports whether something is mounted below a directory now, on the host, so that an overlay of that may have to
// be split.
func MountsBelow() (func(dir string) bool, error) { return mount.Below() }

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
