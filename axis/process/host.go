package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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
