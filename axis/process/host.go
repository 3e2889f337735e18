package process

import (
	"context"
	"fmt"
	"io/fs"
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
	// Env is what every command gets, beside PATH, HOME, TMPDIR and GIT_OPTIONAL_LOCKS=0, and before what it asks for itself. Nothing
	// else of the host's environment reaches it.
	Env map[string]string
	// Path is the commands' PATH, "" the caller's.
	Path string
	// Fill makes dir what a command sees: an empty directory, or one that it filled before and in which a command has worked since. Where it
	// fails it is called again with an empty one. Nil leaves what stands there.
	Fill func(dir string) error
	// Unchanged reports whether a file is as it was when a was taken of it, b being of now, as its size, times and inode say: it is not read
	// again then. Nil reads every file before and after each command.
	Unchanged func(a, b fs.FileInfo) bool
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
	free   []*place   // that no command has
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
	if h.o.Path == "" {
		h.o.Path = os.Getenv("PATH")
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
	p, before, err := h.begin()
	if err != nil {
		return nil, fmt.Errorf("process: %s: the files that it sees: %w", c, err)
	}
	var res *Result
	err = h.o.Outside(ctx, func() (err error) {
		res, err = h.run(ctx, c, filepath.Dir(p.dir), p.dir)
		return err
	})
	if err != nil {
		h.drop(p)
		return res, err
	}
	if res.Changes, err = p.changes(before); err != nil {
		h.drop(p)
		return nil, fmt.Errorf("process: %s: what it left: %w", c, err)
	}
	h.giveBack(p)
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

// begin gives a command its place, with the files that it sees, and says what stands there.
func (h *Host) begin() (*place, map[string]entry, error) {
	p, err := h.take()
	if err != nil {
		return nil, nil, err
	}
	before, err := h.fill(p)
	if err != nil { // what the last command left may be why
		h.drop(p)
		if p, err = h.newPlace(); err != nil {
			return nil, nil, err
		}
		before, err = h.fill(p)
	}
	if err != nil {
		h.drop(p)
		return nil, nil, err
	}
	return p, before, nil
}

func (h *Host) fill(p *place) (map[string]entry, error) {
	if h.o.Fill == nil {
		return nil, nil
	}
	if err := h.o.Fill(p.dir); err != nil {
		return nil, err
	}
	return p.entries()
}

// take returns a place that is free, or a new one. Without Fill nobody would take away what a command left.
func (h *Host) take() (*place, error) {
	h.mu.Lock()
	if n := len(h.free); n > 0 && !h.closed {
		p := h.free[n-1]
		h.free = h.free[:n-1]
		h.mu.Unlock()
		return p, nil
	}
	h.mu.Unlock()
	return h.newPlace()
}

// newPlace makes a directory, below that of the host.
func (h *Host) newPlace() (_ *place, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, os.ErrClosed
	}
	if h.base == "" {
		if h.base, err = h.newBase(); err != nil {
			return nil, err
		}
	}
	h.places++
	p := &place{dir: filepath.Join(h.base, strconv.Itoa(h.places)), unchanged: h.o.Unchanged}
	return p, os.Mkdir(p.dir, 0o700)
}

func (h *Host) giveBack(p *place) {
	if h.o.Fill == nil {
		h.drop(p)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, p)
}

// drop removes a place that is not to be used again.
func (h *Host) drop(p *place) { _ = removeAll(p.dir) } // Close tries again, and says so
