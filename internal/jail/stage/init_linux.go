package stage

import (
	"errors"
	"maps"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/launch"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// runInit is PID 1 of the jail. It ends when the recorder does, and everything inside with it.
func runInit() {
	defaultSignals()
	if !launch.AwaitIDs() {
		return
	}
	conn, err := connOf(launch.ControlFD)
	if err != nil {
		return
	}
	ctl := &Control{UnixConn: conn}
	in := &initProcess{ctl: ctl, tty: -1, plan: make(chan []int, 1)}
	w, err := in.begin()
	warmThreads(6, 0) // the recorder waits for no more than what begin says
	// From here on, for the recorder may be killed while the world is made, and a split may copy for seconds. What serve
	// answers is asked for once the recorder has been told that the world stands.
	go in.serve()
	if err == nil {
		err = in.setUp(w)
	}
	if err != nil {
		ctl.Send(failed(err))
		return
	}
	in.reap()
	select {} // OpenRoot is still answered, until the recorder's end closes
}

// defaultSignals takes away every handler, the Go runtime's too. The program may signal us, and what has no handler does not
// end a PID 1: the kernel drops it. Go's handlers would take a queued signal, by the number of one of our threads, for a
// fault of our own. A real fault still ends us. (Ignoring instead would be inherited.)
func defaultSignals() {
	var none [4]uintptr // struct sigaction: SIG_DFL, no flags, no mask
	for sig := uintptr(1); sig <= 64; sig++ {
		// An error means SIGKILL or SIGSTOP, which have no handlers.
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
	}
}

// warmThreads makes the runtime's threads now, more than it needs: it keeps them, and so all have numbers below
// filter.ChildPID, where the filter guards them. Of count threads the one that has a needed number ends.
func warmThreads(count, needed int) {
	var all, done sync.WaitGroup
	all.Add(count)
	for range count {
		done.Go(func() {
			runtime.LockOSThread()
			all.Done()
			all.Wait()
			if unix.Gettid() != needed { // one that stays locked ends with its goroutine
				runtime.UnlockOSThread()
			}
		})
	}
	done.Wait()
}

type initProcess struct {
	ctl     *Control
	plan    chan []int     // what came with MsgPlan, once
	program int            // its PID, and that of its process group
	tty     int            // the terminal of this session, -1 for none: see takeTerminal
	targets map[string]int // and the layers of overlays

	lastPID int   // see setLastPID
	streams []int // the program's
	exec    int   // the exec stage's control socket
}

// begin makes what every world has.
func (in *initProcess) begin() (*mount.World, error) {
	// Nothing that we inherited is the program's unless it is passed on by name.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return nil, &step.Error{Op: "close descriptors", Err: err}
	}
	w, err := mount.NewWorld()
	if err != nil {
		return nil, err
	}
	return w, in.ctl.Send(&Message{Kind: MsgBegun})
}

// setUp waits until it is told what the world is to be, makes it, and starts the exec stage in it. The network, which is the same in every
// world, comes up before: the recorder finds out meanwhile what it has to tell.
func (in *initProcess) setUp(w *mount.World) error {
	var spec InitSpec
	var program ExecSpec
	socks, errNet := network.Up()
	handed := <-in.plan
	if err := in.take(handed, &spec, &program); err != nil {
		return err
	}
	if spec.Umask != nil {
		unix.Umask(*spec.Umask) // the program comes from us
	}
	if spec.TTY >= 0 && inspect.IsTerminal(in.streams[spec.TTY]) {
		if err := in.takeTerminal(in.streams[spec.TTY]); err != nil {
			return &step.Error{Op: "take the terminal", Err: err}
		}
	}
	if spec.Hostname != "" {
		if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
			return &step.Error{Op: "set the host name", Path: spec.Hostname, Err: err}
		}
	}
	if err := w.Build(&spec.Mounts, handed[7:]); err != nil {
		return err
	}
	in.targets = w.Opened
	maps.Copy(in.targets, w.Layers)
	if errNet != nil {
		return errNet
	}
	if err := socks.Listen(spec.Ports); err != nil {
		return err
	}
	ready := &Message{Kind: MsgReady, NotCovered: append(w.NotCovered, socks.NotCovered...), Listeners: len(spec.Ports)}
	err := in.ctl.Send(ready, socks.FDs()...)
	socks.Close()
	if err != nil {
		return err
	}
	return in.startExec(&program, spec.Notified, spec.Background)
}

// take takes over what came with the plan.
func (in *initProcess) take(fds []int, spec *InitSpec, program *ExecSpec) error {
	in.exec, in.streams, in.lastPID = fds[1], fds[3:6], fds[6]
	if err := readSpec(fds[0], spec); err != nil {
		return &step.Error{Op: "read the plan", Err: err}
	}
	return step.Wrap("read the program's spec", "", readSpec(fds[2], program))
}

// startExec starts the exec stage with the program's streams, then closes them here: only the program's own copies
// decide when a pipe ends.
func (in *initProcess) startExec(spec *ExecSpec, n Notified, background bool) error {
	defer func() { inspect.CloseAll(append(in.streams, in.exec)) }()
	s := newExecStage(in, spec, n, background)
	defer s.close()
	if err := in.fork(s); err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		unix.Write(in.exec, []byte{stepFork, byte(errno)}) // that the recorder is gone ends us too
		return err
	}
	if in.tty >= 0 {
		_ = unix.Setpgid(in.program, in.program) // an error means that it has done so, and more
	}
	return nil
}

// fork starts the exec stage, and again where a thread of ours took its PID.
func (in *initProcess) fork(s *execStage) error {
	const tries = 16
	for range tries {
		setLastPID(in.lastPID, filter.ProgramPID-1)
		pid, err := s.fork()
		if err != nil {
			return err
		}
		if in.program = pid; !misnumbered(pid) {
			return nil
		}
		unix.Wait4(pid, nil, 0, nil)
		warmThreads(64, filter.ProgramPID)
	}
	return unix.EAGAIN
}

// serve answers the recorder until its end closes, and ends the jail then.
func (in *initProcess) serve() {
	for {
		m, fds, err := in.ctl.Recv()
		if err != nil {
			syscall.Exit(0) // at once: nothing is left to be flushed
		}
		switch m.Kind {
		case MsgPlan:
			in.plan <- fds
			fds = nil
		case MsgSignal:
			unix.Kill(in.signalTarget(syscall.Signal(m.Signal)), syscall.Signal(m.Signal))
		case MsgForeground, MsgBackground:
			in.foreground(m.Kind == MsgForeground)
		case MsgKill:
			unix.Kill(-1, unix.SIGKILL)
		case MsgOpen:
			fd, err := in.opened(m.Path)
			in.handOut(m.Path, fd, err)
		case MsgDiag:
			fd, err := diagIn(fds)
			in.handOut("", fd, err)
		}
		inspect.CloseAll(fds)
	}
}

func (in *initProcess) signalTarget(sig syscall.Signal) int {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP, syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGWINCH:
		return -in.program
	}
	return in.program
}

// What stands for something else where a directory is asked for: for the mounts themselves, and for PIDs that go on from filter.ChildPID.
const (
	MountsInside = "/proc/self/ns/mnt"
	PIDsInside   = "/proc/self/ns/pid"
)

// handOut sends what was opened, or why it was not.
func (in *initProcess) handOut(path string, fd int, err error) {
	if err != nil {
		in.ctl.Send(failed(&step.Error{Op: "open", Path: path, Err: err}))
		return
	}
	in.ctl.Send(&Message{Kind: MsgRoot}, fd)
	unix.Close(fd)
}

// diagIn opens a socket in a network namespace. The thread comes back: a new one would have a number that is not guarded.
func diagIn(fds []int) (int, error) {
	if len(fds) != 1 {
		return -1, unix.EINVAL
	}
	runtime.LockOSThread()
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return -1, err
	}
	defer unix.Close(home)
	if err := unix.Setns(fds[0], unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return -1, err
	}
	fd, err := connect.DiagSocket()
	if unix.Setns(home, unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
	return fd, err
}

// opened opens a directory, or the mounts. A target of the plan, and a layer, is opened through what was mounted there, for the program may have
// moved its parents since; for others no symbolic link of the program's is followed.
func (in *initProcess) opened(path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	switch path {
	case MountsInside:
		return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	case PIDsInside:
		setLastPID(in.lastPID, filter.ChildPID-1)
		return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	dir, rest := unix.AT_FDCWD, path
	if fd, ok := in.targets[filepath.Clean(path)]; ok {
		dir, rest = fd, "."
	}
	return unix.Openat2(dir, rest, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

// reap waits for every process that ends here. When the program does, the rest is stopped, the recorder looks what still lives,
// and has it killed; once that is gone too it is told: nothing inside changes any more then. It is told, too, when the program
// is stopped.
func (in *initProcess) reap() {
	var status unix.WaitStatus
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // nobody is left
			in.ctl.Send(&Message{Kind: MsgExit, Exit: process.ExitOf(status)})
			return
		case ws.Stopped():
			if pid == in.program {
				in.ctl.Send(&Message{Kind: MsgStopped, Signal: int(ws.StopSignal())})
			}
		case pid == in.program:
			status = ws
			if unix.Kill(-1, unix.SIGSTOP) == nil && in.ctl.Send(&Message{Kind: MsgOver}) != nil {
				unix.Kill(-1, unix.SIGKILL)
			}
		}
	}
}

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

// A program on a terminal is a job of the init's session, as it would be of a shell's: a process group of its own, with a
// parent beside it in the session. In a session of its own it would be an orphan, which Ctrl-Z does not stop.

// takeTerminal makes fd the terminal of the init's session.
func (in *initProcess) takeTerminal(fd int) error {
	tty, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	in.tty = tty
	return unix.IoctlSetInt(tty, unix.TIOCSCTTY, 0)
}

// foreground gives the terminal to the program, or takes it from whichever group has it: who reads it then, or changes its
// modes, is stopped.
func (in *initProcess) foreground(on bool) {
	if in.tty < 0 {
		return
	}
	group := in.program
	if !on {
		group = unix.Getpgrp()
	}
	// Who is in the background itself would be stopped for this, unless it blocks the signal.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old unix.Sigset_t
	block := unix.Sigset_t{Val: [len(old.Val)]uint64{1 << (unix.SIGTTOU - 1)}}
	if unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old) != nil {
		return
	}
	unix.IoctlSetPointerInt(in.tty, unix.TIOCSPGRP, group)
	unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}

// OpenLastPID opens the file that says which PID was given last. It works on the PID namespace of who writes it, through
// any /proc; the recorder opens it on the host, for a mount of the jail's own that is written to cannot become read-only.
// Where it cannot be had PIDs stay as they come.
func OpenLastPID() (*os.File, error) {
	f, err := os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0)
	if err != nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	return f, nil
}

// setLastPID writes from the beginning of the file, which two of our stages share: the kernel passes over what is written elsewhere.
func setLastPID(fd, pid int) {
	unix.Pwrite(fd, strconv.AppendInt(nil, int64(pid), 10), 0)
}

// misnumbered reports whether the exec stage, which has pid, was to have filter.ProgramPID and came too late for it: it ends at once.
//
//go:norace
//go:nosplit
func misnumbered(pid int) bool { return pid > filter.ProgramPID && pid < filter.ChildPID }
