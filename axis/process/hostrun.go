package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// An OutputError is a command that wrote more than it may. It was ended then.
type OutputError struct {
	Command Command
	Stream  string // "stdout" or "stderr"
	Limit   int64  // bytes
}

// Error implements error.
func (e *OutputError) Error() string {
	return fmt.Sprintf("process: %s: wrote more than %d bytes to %s, and was ended; have it write less, or into a file",
		&e.Command, e.Limit, e.Stream)
}

// run runs c in dir, and waits for all of it.
func (h *Host) run(ctx context.Context, c *Command, base, dir string) (*Result, error) {
	if c.Cwd != nil {
		dir = filepath.Join(dir, filepath.FromSlash(*c.Cwd))
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("process: %s: there is no such directory among the files", c)
	}
	env, path := h.environment(c, base)
	program, failure := lookUp(c.Program, dir, path)
	if failure != nil {
		return failure, nil
	}
	cmd := &exec.Cmd{Path: program, Args: append([]string{c.Program}, c.Args...), Dir: dir, Env: env}
	began := h.now()
	r, err := start(cmd, c, h.o.MaxOutput)
	if err != nil {
		return nil, err
	}
	if r.failure != nil {
		return r.failure, nil
	}
	res, err := r.wait(ctx, h.o.Linger)
	if res != nil {
		res.Passed, res.Duration = true, h.now()-began
	}
	return res, err
}

func (h *Host) now() time.Duration {
	if h.o.Now == nil {
		return 0
	}
	return h.o.Now()
}

// environment is what a command gets, sorted, and the PATH in it. A git that only looks must not write what it saw of the files
// into its index, which is of this copy and of this moment.
func (h *Host) environment(c *Command, base string) (env []string, path string) {
	home, tmp := filepath.Join(base, "home"), filepath.Join(base, "tmp")
	all := map[string]string{"PATH": os.Getenv("PATH"), "HOME": home, "TMPDIR": tmp, "GIT_OPTIONAL_LOCKS": "0"}
	if onWindows {
		maps.Copy(all, map[string]string{"USERPROFILE": home, "TEMP": tmp, "TMP": tmp})
	}
	maps.Copy(all, h.o.Env)
	maps.Copy(all, c.Env)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env, all["PATH"]
}

// lookUp finds a program as a shell in dir would; where there is none it returns what a shell says of that.
func lookUp(program, dir, path string) (string, *Result) {
	if strings.ContainsAny(program, `/`+string(filepath.Separator)) {
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		found, err := exec.LookPath(program)
		if err == nil {
			return found, nil
		}
		return "", notRun(program, err)
	}
	var first error
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue // what lies where a command runs is not to be run by its bare name
		}
		found, err := exec.LookPath(filepath.Join(d, program))
		if err == nil {
			return found, nil
		}
		if first == nil && errors.Is(err, os.ErrPermission) {
			first = err
		}
	}
	if first == nil {
		first = exec.ErrNotFound
	}
	return "", notRun(program, first)
}

// notRun is what became of a program that was not started.
func notRun(program string, err error) *Result {
	res := &Result{ExitCode: 126, Failure: FailureNotRun, Passed: true}
	why := err
	var named *exec.Error
	if errors.As(err, &named) {
		why = named.Err
	}
	var at *os.PathError
	if errors.As(err, &at) {
		why = at.Err
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		res.ExitCode, res.Failure = 127, FailureNotFound
		why = errors.New("command not found")
	}
	res.Stderr = fmt.Appendf(nil, "%s: %v\n", filepath.Base(program), why)
	return res
}

// A running is a command that goes on.
type running struct {
	cmd     *exec.Cmd
	command *Command
	failure *Result // it was not started

	stdin   io.Closer // our end
	streams [2]*captured
	over    chan *captured // which wrote too much
	done    sync.WaitGroup // of the goroutines that copy; they end with the pipes, which wait closes
}

// A captured is what a command writes to one stream.
type captured struct {
	name  string
	limit int64
	from  *os.File
	b     []byte // guarded by ended
	ended chan struct{}
}

// start starts cmd. What it writes is taken from then on.
func start(cmd *exec.Cmd, c *Command, limit int64) (*running, error) {
	r := &running{cmd: cmd, command: c, over: make(chan *captured, 2)}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	for i, name := range []string{"stdout", "stderr"} {
		from, to, err := os.Pipe()
		if err != nil {
			r.closeAll()
			return nil, err
		}
		theirs = append(theirs, to)
		r.streams[i] = &captured{name: name, limit: limit, from: from, ended: make(chan struct{})}
	}
	cmd.Stdout, cmd.Stderr = theirs[0], theirs[1]
	var in *os.File
	if len(c.Stdin) > 0 {
		from, to, err := os.Pipe()
		if err != nil {
			r.closeAll()
			return nil, err
		}
		theirs = append(theirs, from)
		cmd.Stdin, in, r.stdin = from, to, to
	}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		r.closeAll()
		r.failure = notRun(c.Program, err)
		return r, nil
	}
	r.copy(in)
	return r, nil
}

// closeAll closes our ends.
func (r *running) closeAll() {
	for _, s := range r.streams {
		if s != nil {
			s.from.Close()
		}
	}
	if r.stdin != nil {
		r.stdin.Close()
	}
}

// copy starts the goroutines that feed the command and take what it writes.
func (r *running) copy(in *os.File) {
	if in != nil {
		r.done.Go(func() {
			_, _ = in.Write(r.command.Stdin) // who does not read it all does not want it
			in.Close()
		})
	}
	for _, s := range r.streams {
		r.done.Go(func() {
			defer close(s.ended)
			s.b, _ = io.ReadAll(io.LimitReader(s.from, s.limit+1)) // its end is the error too
			if int64(len(s.b)) > s.limit {
				s.b = s.b[:s.limit]
				r.over <- s
			}
		})
	}
}

// wait waits for the end of the command, of its output and of what it has left running.
func (r *running) wait(ctx context.Context, linger time.Duration) (*Result, error) {
	exited := make(chan struct{})
	go func() { // ends with the command
		defer close(exited)
		awaitExit(r.cmd)
	}()
	var cut error
	select {
	case <-exited:
	case <-ctx.Done():
		cut = fmt.Errorf("process: %s: %w", r.command, ended(ctx))
	case s := <-r.over:
		cut = r.tooMuch(s)
	}
	if cut != nil {
		endGroup(r.cmd)
		<-exited
	} else {
		cut = r.drain(ctx, linger)
	}
	endGroup(r.cmd)
	_ = r.cmd.Wait() // how it ended is in ProcessState
	r.closeAll()
	r.done.Wait()
	res := resultOf(r.cmd.ProcessState)
	res.Stdout, res.Stderr = r.streams[0].b, r.streams[1].b
	switch {
	case cut == nil:
		return res, nil
	case ctx.Err() != nil:
		res.Failure = FailureCancelled
		return res, cut
	}
	return nil, cut
}

// drain waits until the output of a command that has ended does so too: what it has left running may hold it open, but not for long.
func (r *running) drain(ctx context.Context, linger time.Duration) error {
	t := time.NewTimer(linger)
	defer t.Stop()
	for _, s := range r.streams {
		select {
		case <-s.ended:
		case <-t.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("process: %s: %w", r.command, ended(ctx))
		}
	}
	select {
	case s := <-r.over:
		return r.tooMuch(s)
	default:
		return nil
	}
}

// ended says why a context has ended, also where somebody gave a reason.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func (r *running) tooMuch(s *captured) error {
	return &OutputError{Command: *r.command.Clone(), Stream: s.name, Limit: s.limit}
}
