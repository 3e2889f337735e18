package deck

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// wrapDrain is how long what a server wrote is passed on when its process has ended: what it started may hold its stdout for ever.
const wrapDrain = 5 * time.Second

// wrapGap is what the ledger of a wrapped server says of every axis but its talk.
const wrapGap = "all of it: mcp wrap records what is said with one MCP server, and nothing else"

// WrapMCP runs an MCP server as it is, outside the jail, with the caller's own standard streams, and leaves a recording of what is said
// with it. Its bytes pass unchanged. Of o count Argv, Dir, Env, Streams, Signals (which go to the server), Output, Sync, NoSeal,
// ConfigDir, Log, Hiding and Sealing. The result's Exit is the server's; where nothing of MCP was said its MCP has no server. Errors
// are those of Record.
func WrapMCP(ctx context.Context, o *RecordOptions) (*Result, error) {
	own := *o
	own.Proxy, own.Daemon = true, nil
	if err := outsideAvailable(); err != nil {
		return nil, err
	}
	r, err := newRecorder(&own)
	if err != nil {
		return nil, err
	}
	r.manifest.Proxy, r.manifest.Wrapped, r.manifest.TTY = false, true, nil
	defer func() { recording.Unlock(r.held) }()
	if err := r.begin(); err != nil {
		return nil, err
	}
	defer r.s.close()
	return wrapper{r}.wrap(ctx)
}

// A wrapper is one WrapMCP under way.
type wrapper struct{ *recorder }

// wrap holds the talk and finishes the recording.
func (r wrapper) wrap(ctx context.Context) (*Result, error) {
	r.changing = newChanging(r.s, r.trees, nil) // never begun: it follows nothing
	begun := time.Now()
	w, err := r.startWrapped()
	if err != nil {
		return nil, err
	}
	exit, err := w.run(ctx, r.o.Signals)
	if err != nil {
		return nil, r.unwritten(programHadEnded, err)
	}
	if err := r.finishWrapped(exit, time.Since(begun)); err != nil {
		return nil, r.unwritten(programHadEnded, r.exposed(err))
	}
	return r.result(ctx, exit), nil
}

// errNoEnd is the error of a server of which nobody can tell how it ended.
var errNoEnd = errors.New("how the server ended cannot be told")

// A wrapped is a server that runs with a Relay before it.
type wrapped struct {
	r   *recorder
	cmd *exec.Cmd
	o   *mcp.RelayOptions

	outputs sync.WaitGroup // what copies to the caller
}

// startWrapped starts the server between pipes.
func (r wrapper) startWrapped() (w *wrapped, err error) {
	m := r.manifest
	w = &wrapped{r: r.recorder, cmd: exec.Command(m.Program.Path)}
	w.cmd.Args, w.cmd.Dir, w.cmd.Env = r.o.Argv, m.Cwd, r.env
	w.o = &mcp.RelayOptions{Log: r.s.mcp, Opened: &mcp.Opened{
		Transport: mcp.Stdio, Program: r.s.roots.TapePath(m.Program.Path), Args: r.o.Argv[1:], Cwd: r.s.roots.TapePath(m.Cwd),
	}}
	var pipes pipes
	defer func() { closeAll(pipes.theirs) }()
	stdin, toServer := pipes.make()
	fromServer, stdout := pipes.make()
	errors1, stderr := pipes.make()
	w.o.ServerIn, w.o.ServerOut, w.o.ServerErr = toServer, fromServer, errors1
	w.o.ClientIn, w.o.ClientOut, w.o.ClientErr = given(&pipes, r.o.Stdin), w.copied(&pipes, r.o.Stdout), w.copied(&pipes, r.o.Stderr)
	if pipes.err != nil {
		return nil, pipes.err
	}
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = stdin, stdout, stderr
	pipes.theirs = []*os.File{stdin, stdout, stderr}
	if err := w.cmd.Start(); err != nil {
		return nil, &program.NotFoundError{Name: r.o.Argv[0], Err: err}
	}
	return w, nil
}

// pipes are made until the first fails.
type pipes struct {
	theirs []*os.File // the ends that are the server's
	err    error
}

func (p *pipes) make() (r, w *os.File) {
	if p.err == nil {
		r, w, p.err = os.Pipe()
	}
	return r, w
}

// given is a pipe of what a stream gives.
func given(p *pipes, stdin io.Reader) *os.File {
	from, to := p.make()
	go func() { // not waited for: a terminal cannot be stopped
		defer to.Close()
		if stdin != nil {
			_, _ = io.Copy(to, stdin) // the server has ended
		}
	}()
	return from
}

// copied is a pipe whose bytes go to a stream.
func (w *wrapped) copied(p *pipes, to io.Writer) *os.File {
	if to == nil {
		to = io.Discard
	}
	from, end := p.make()
	w.outputs.Go(func() {
		defer from.Close() // nobody reads there any more
		_, _ = io.Copy(to, from)
	})
	return end
}

// run waits until the server has ended and what it said is passed on.
func (w *wrapped) run(ctx context.Context, signals <-chan os.Signal) (recording.Exit, error) {
	relay, stop := context.WithCancel(w.r.s.failed)
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = w.cmd.Process.Kill() })()
	defer context.AfterFunc(w.r.s.failed, func() { _ = w.cmd.Process.Kill() })()
	defer onSignals(signals, func(sig os.Signal) { _ = w.cmd.Process.Signal(sig) })() // it may have ended
	ended := make(chan error, 1)
	go func() {
		err := w.cmd.Wait()
		time.AfterFunc(wrapDrain, stop)
		ended <- err
	}()
	c, err := mcp.Relay(relay, w.o)
	if err != nil {
		_ = w.cmd.Process.Kill()
	}
	w.outputs.Wait()
	if failed := new(exec.ExitError); !errors.As(<-ended, &failed) && w.cmd.ProcessState == nil {
		return recording.Exit{}, errors.Join(err, errNoEnd)
	}
	exit := exitOf(procgroup.ExitOf(w.cmd.ProcessState))
	if err == nil {
		err = c.End(mcp.Ended{Exited: true, ExitCode: exit.Code, Signal: exit.Signal})
	}
	return exit, errors.Join(err, w.r.s.failure())
}

// finishWrapped puts the end on the tape and closes the recording. The server's own record has no streams: they are its talk.
func (r wrapper) finishWrapped(exit recording.Exit, took time.Duration) error {
	l, err := endTape(r.s, r.changing, nil, rescrubOptions{sync: r.o.Sync, progress: r.o.Hiding}, func() error {
		none, err := r.s.rec.Payload(nil)
		if err != nil {
			return err
		}
		k := &tape.ProcessSpawn{ExitCode: exit.Code, Signal: exit.Signal, DurationMS: took.Milliseconds(), Stdout: none, Stderr: none}
		t := texts{s: r.s}
		t.say(k, r.manifest.Program.Path, r.o.Argv[1:], r.manifest.Cwd)
		return r.s.rec.RecordRaw(k, t.raw)
	})
	if err == nil {
		err = r.rescrubManifest(l)
	}
	if err != nil {
		return err
	}
	return r.conclude(l, exit, func() map[string]recording.Axis {
		axes := make(map[string]recording.Axis)
		for _, name := range []string{"clock", "files", "llm", "network", "process", "terminal"} {
			axes[name] = recording.Axis{NotCovered: []string{wrapGap}}
		}
		axes["secrets"] = recording.Axis{On: true, NotCovered: r.secretGaps(l)}
		axes[recording.AxisMCP] = recording.Axis{On: true, NotCovered: append([]string{}, r.s.mcp.Lost()...)}
		return axes
	})
}
