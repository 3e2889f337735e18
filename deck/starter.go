package deck

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// A JailStarter starts the programs of terminal sessions in the jail, on Linux: they see this machine's files read-only, but
// for Writable, and reach no network. What a program leaves running ends with it. Enter must have been called.
type JailStarter struct {
	Writable []string // directories that programs may change, absolute
	Hostname string   // the machine's own when empty
}

// Start implements terminal.Starter. The error is a *NotFoundError where the program is not there, one that wraps
// ErrUnavailable where the jail cannot be.
func (st *JailStarter) Start(ctx context.Context, p *terminal.Program) (terminal.Process, error) {
	dir, err := recording.WorkingDir(p.Dir)
	if err != nil {
		return nil, err
	}
	path, err := program.Find(p.Argv[0], dir, p.Env)
	if err != nil {
		return nil, err
	}
	writable, err := directories("Writable", st.Writable)
	if err != nil {
		return nil, err
	}
	// The session, and not the end of ctx, ends the program: it is given time.
	j, err := jail.Start(context.WithoutCancel(ctx), &jail.Config{
		Path: path, Argv: p.Argv, Env: p.Env, Dir: dir, Hostname: st.Hostname,
		Stdin: p.TTY, Stdout: p.TTY, Stderr: p.TTY, TTY: 0, Writable: writable,
	})
	if err != nil {
		return nil, err
	}
	j.StopNetwork() // nobody answers
	proc := &jailProcess{j: j, ended: make(chan struct{})}
	if err := j.Release(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	proc.keeping.Go(proc.goOn)
	return proc, nil
}

// A jailProcess is a session's program in the jail.
type jailProcess struct {
	j       *jail.Jail
	ended   chan struct{}  // closed by Wait
	keeping sync.WaitGroup // goOn, until ended
}

// goOn continues the program whenever it was stopped: nobody else would. It ends with the program.
func (p *jailProcess) goOn() {
	for {
		select {
		case <-p.ended:
			return
		case sig := <-p.j.Stopped():
			if sig == procgroup.SigTTIN || sig == procgroup.SigTTOU {
				p.j.Foreground(true)
			}
			p.j.Signal(procgroup.SigCONT)
		}
	}
}

// Wait implements terminal.Process.
func (p *jailProcess) Wait() (terminal.Status, error) {
	exit, err := p.j.Wait()
	close(p.ended)
	p.keeping.Wait()
	return terminal.Status{Code: exit.Code, Signal: exit.Signal}, errors.Join(err, p.j.Close())
}

// Signal implements terminal.Process.
func (p *jailProcess) Signal(sig syscall.Signal) error {
	select {
	case <-p.ended:
		return nil
	default:
		return p.j.Signal(sig)
	}
}
