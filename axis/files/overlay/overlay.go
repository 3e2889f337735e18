package overlay

import (
	"cmp"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Options say what a tree begins as, and what it may hold. Nil and zero work: an empty tree in memory.
type Options struct {
	// Dir is the directory below the tree: read where the program asks, written by WriteBack alone. "" is none.
	Dir string
	// Tape answers in the place of Dir, which must be "".
	Tape *Taped
	// Unknown is told of every question to which Tape has no answer, before whoever asked is. Nil is nobody.
	Unknown func(err *UnknownError)
	// MaxBytes bounds what the program's changes hold in memory: contents, and 512 bytes for each path. 0 is 256 MiB.
	MaxBytes int64
	// MaxFile bounds one file, written or read. 0 is 64 MiB.
	MaxFile int64
	// Now is the time that a file gets when it is written; what the program did not write has that of New. It is never recorded
	// and may be called by several goroutines at once. Nil is 2026-01-01T00:00:00Z for ever.
	Now func() time.Time
}

// The bounds where Options names none, in bytes.
const (
	defaultMaxBytes = 256 << 20
	defaultMaxFile  = 64 << 20
)

// FS is a tree of files. Its methods may be called by several goroutines at once, and each is whole.
type FS struct {
	dir     string
	low     lower // nil of an empty tree
	now     func() time.Time
	began   time.Time
	limit   int64 // of all that is written
	maxFile int64
	rec     *tape.Recorder
	unknown func(err *UnknownError) // nil for nobody

	mu   sync.RWMutex
	top  *node // guarded by mu, with all below it
	used int64 // of limit; guarded by mu
	// base is what the lower layer had at each path that the run changed, when it first did; guarded by mu. Of what lay below a
	// directory that moved it says nothing.
	base map[string]look
	// due is what Files changed and others came to see; guarded by mu. It is recorded before anything else.
	due []written
	// copies are what Copy left, by directory and path; guarded by mu.
	copies map[string]map[string]copied
}

var (
	_ fs.ReadFileFS = (*FS)(nil)
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.StatFS     = (*FS)(nil)
	_ fs.ReadLinkFS = (*FS)(nil)
)

// New returns a tree that begins as o says. Errors: Dir and Tape both; Dir is no directory, or cannot be opened.
func New(o *Options) (*FS, error) {
	if o == nil {
		o = &Options{}
	}
	f := &FS{
		dir: o.Dir, now: o.Now, limit: cmp.Or(o.MaxBytes, defaultMaxBytes), maxFile: cmp.Or(o.MaxFile, defaultMaxFile),
		top: &node{mode: files.Dir | 0o755}, base: make(map[string]look),
	}
	f.unknown = o.Unknown
	if f.now == nil {
		f.now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	}
	f.began = f.now()
	f.top.mtime = f.began
	switch {
	case o.Dir != "" && o.Tape != nil:
		return nil, fmt.Errorf("overlay: a tree begins as the directory %s or as a tape says, not as both", o.Dir)
	case o.Dir != "":
		low, err := openDir(o.Dir, f.maxFile)
		if err != nil {
			return nil, err
		}
		f.low = low
	case o.Tape != nil:
		f.low = o.Tape
	}
	f.top.opaque = f.low == nil
	return f, nil
}

// Record has what is read and written from now on recorded. It is called before the first use; nil records nothing and costs
// nothing.
func (f *FS) Record(rec *tape.Recorder) { f.rec = rec }

// Close lets the directory go. What the program wrote goes with the tree.
func (f *FS) Close() error {
	if f.low == nil {
		return nil
	}
	return f.low.close()
}

// looking is what locks f for reading. Where a tape is written that is no less than for writing: what Files changed may have to be
// recorded.
func (f *FS) looking() sync.Locker {
	if f.rec == nil {
		return f.mu.RLocker()
	}
	return &f.mu
}

// A call is one use of a path, from when the tree is locked for it.
type call struct {
	f        *FS
	op, name string
	lock     sync.Locker
}

func (f *FS) begin(op, name string, lock sync.Locker) (call, error) {
	if err := check(op, name); err != nil {
		return call{}, err
	}
	lock.Lock()
	return call{f, op, name, lock}, nil
}

// beginChange is begin for who changes what stands at name.
func (f *FS) beginChange(op, name string) (call, error) {
	if name == "." {
		return call{}, failure(op, name, errTop)
	}
	return f.begin(op, name, &f.mu)
}

// end opens the lock, and records what came of it: what note does, or of a failure what of the tree is the reason, at p.
func (c call) end(p *place, err error, note func() error) error {
	c.lock.Unlock()
	if err != nil {
		return c.f.failed(c.op, c.name, p, err)
	}
	if c.f.rec == nil {
		return nil
	}
	return note()
}

// grow counts n bytes more, of which some may be taken back by a negative n. It is called under mu.
func (f *FS) grow(n int64) error {
	if n > 0 && n > f.limit-f.used {
		return &reason{errno: syscall.ENOSPC, text: fmt.Sprintf("what was written holds more than the limit of %d bytes: raise Options.MaxBytes", f.limit), own: true}
	}
	f.used += n
	return nil
}
