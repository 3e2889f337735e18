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
	"strconv"
	"strings"
	"sync"
	"time"
)

// DefaultMaxOutput is how many bytes a command may write to stdout, and to stderr, unless HostOptions say otherwise.
const DefaultMaxOutput = 64 << 20

// HostOptions say how a Host runs commands. Nil and zero work.
type HostOptions struct {
	// Env is what every command gets, beside the caller's PATH, HOME, TMPDIR and GIT_OPTIONAL_LOCKS=0, and before what it asks for itself. Nothing
	// else of the host's environment reaches it.
	Env map[string]string
	// Fill makes dir what a command sees: an empty directory, or one that it filled before and in which a command has worked since. Where it
	// fails it is called again with an empty one. Nil leaves what stands there.
	Fill func(dir string) error
	// Changes lists what became of a directory that Fill filled, once a command has worked in it. Nil lists nothing.
	Changes func(dir string) ([]Change, error)
	// MaxOutput bounds, in bytes, each of stdout and stderr: DefaultMaxOutput where it is 0.
	MaxOutput int64
	// Linger is how long what a command has left running may go on writing to its output: a second where it is 0.
	Linger time.Duration
	// Now is a monotonic clock, by which Result.Duration is measured. Nil: every command lasts 0, which is the same in each run.
	Now func() time.Duration
	// Outside runs f, which waits for the world. Nil calls it.
	Outside func(ctx context.Context, f func() error) error
	// Dir is where the directories of the commands are made; "" is os.TempDir.
	Dir string
}

// A Host runs commands on this machine, each in a directory that no other command has meanwhile; what the command changed there is in
// Result.Changes. All of them have the same empty HOME and TMPDIR, which are gone with the Host, as are the directories.
//
// It keeps no command from the rest of the machine: who asks for a Host trusts what runs. On unix a command is a process group, and
// nothing of the group outlives it or its context; elsewhere only the command itself is ended.
type Host struct {
	o HostOptions

	mu     sync.Mutex // guards what follows
	base   string     // the directory of everything; "" before the first command
	places int        // that were made
	free   []string   // those that no command has
	closed bool
}

// NewHost returns a Host. Close removes what it leaves on the disk.
func NewHost(o *HostOptions) *Host {
	h := &Host{}
	if o != nil {
		h.o = *o
	}
	if h.o.MaxOutput == 0 {
		h.o.MaxOutput = DefaultMaxOutput
	}
	if h.o.Linger == 0 {
		h.o.Linger = time.Second
	}
	if h.o.Changes == nil {
		h.o.Changes = func(string) ([]Change, error) { return nil, nil }
	}
	if h.o.Outside == nil {
		h.o.Outside = func(_ context.Context, f func() error) error { return f() }
	}
	return h
}

// Close removes the directories of the commands. No command may be running.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.base == "" {
		return nil
	}
	return removeAll(h.base)
}

// Run implements Runner. The error is the context's, an *OutputError, or that of the files.
func (h *Host) Run(ctx context.Context, c *Command) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Cwd != nil && !filepath.IsLocal(filepath.FromSlash(*c.Cwd)) {
		return nil, fmt.Errorf("process: %s: cwd %q is not within the files; give a path relative to their top", c, *c.Cwd)
	}
	dir, err := h.begin()
	if err != nil {
		return nil, fmt.Errorf("process: %s: the files that it sees: %w", c, err)
	}
	var res *Result
	err = h.o.Outside(ctx, func() (err error) {
		res, err = h.run(ctx, c, filepath.Dir(dir), dir)
		return err
	})
	if err != nil {
		drop(dir)
		return res, err
	}
	if res.Changes, err = h.o.Changes(dir); err != nil {
		drop(dir)
		return nil, fmt.Errorf("process: %s: what it left: %w", c, err)
	}
	if h.o.Fill == nil { // nobody would take away what the command left
		drop(dir)
		return res, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, dir)
	return res, nil
}

func (h *Host) newBase() (string, error) {
	base, err := os.MkdirTemp(h.o.Dir, "tapedeck-run-")
	if err != nil {
		return "", err
	}
	if base, err = filepath.EvalSymlinks(base); err != nil { // what a command prints of it is what it is given
		return "", err
	}
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			return "", err
		}
	}
	return base, nil
}

// removeAll removes a directory in which a program may have taken rights away.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a directory of ours
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// begin gives a command a directory, with the files that it sees.
func (h *Host) begin() (dir string, err error) {
	if dir, err = h.take(); err != nil || h.o.Fill == nil {
		return dir, err
	}
	if h.o.Fill(dir) == nil {
		return dir, nil
	}
	drop(dir) // what the last command left may be why
	if dir, err = h.newDir(); err != nil {
		return "", err
	}
	if err = h.o.Fill(dir); err != nil {
		drop(dir)
	}
	return dir, err
}

// take returns a directory that is free, or a new one.
func (h *Host) take() (string, error) {
	h.mu.Lock()
	if n := len(h.free); n > 0 && !h.closed {
		dir := h.free[n-1]
		h.free = h.free[:n-1]
		h.mu.Unlock()
		return dir, nil
	}
	h.mu.Unlock()
	return h.newDir()
}

// newDir makes a directory, below that of the host.
func (h *Host) newDir() (_ string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", os.ErrClosed
	}
	if h.base == "" {
		if h.base, err = h.newBase(); err != nil {
			return "", err
		}
	}
	h.places++
	dir := filepath.Join(h.base, strconv.Itoa(h.places))
	return dir, os.Mkdir(dir, 0o700)
}

// drop removes a directory that is not to be used again. Host.Close tries again, and says so.
func drop(dir string) { _ = removeAll(dir) }

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
