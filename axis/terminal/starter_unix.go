//go:build linux || darwin

package terminal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// osStarter starts programs on this machine, each the leader of a session of its own.
type osStarter struct{}

// Start implements Starter.
func (osStarter) Start(_ context.Context, p *Program) (Process, error) {
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Env, cmd.Dir = p.Env, p.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &osProcess{cmd: cmd}, nil
}

type osProcess struct {
	cmd *exec.Cmd

	mu     sync.Mutex
	reaped bool // its number may be another's
}

// Wait implements Process.
func (p *osProcess) Wait() (Status, error) {
	err := p.wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return Status{}, err
	}
	ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return Status{Signal: ws.Signal()}, nil
	}
	return Status{Code: p.cmd.ProcessState.ExitCode()}, nil
}

// wait reaps the process, with nobody signalling its number meanwhile where the system can tell its end beforehand.
func (p *osProcess) wait() (err error) {
	known := awaitExit(p.cmd.Process.Pid)
	if !known {
		err = p.cmd.Wait()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	if known {
		err = p.cmd.Wait()
	}
	return err
}

// Signal implements Process.
func (p *osProcess) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := unix.Kill(-p.cmd.Process.Pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// Group is its process group.
func (p *osProcess) Group() int { return p.cmd.Process.Pid }

// openSession opens a terminal whose master's Close ends a Read of it.
func openSession(size Size) (*PTY, error) {
	p, err := Open(size)
	if err != nil {
		return nil, err
	}
	fd, err := unix.FcntlInt(p.Master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, errors.Join(err, p.Master.Close(), p.Slave.Close())
	}
	name := p.Master.Name()
	p.Master.Close()
	p.Master = os.NewFile(uintptr(fd), name) // of a descriptor that does not block
	return p, nil
}

func signalGroup(group int, sig syscall.Signal) error { return unix.Kill(-group, sig) }

func signalName(sig syscall.Signal) string { return unix.SignalName(sig) }

// The signals of the end of a terminal's session.
const (
	hangUpSignal   = syscall.SIGHUP
	continueSignal = syscall.SIGCONT
	resizeSignal   = syscall.SIGWINCH
)
