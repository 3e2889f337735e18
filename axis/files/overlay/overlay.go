package overlay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
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
	tree
	dir     string
	now     func() time.Time
	unknown func(err *UnknownError) // nil for nobody
	// copies are what Copy left, by directory and path; guarded by mu.
	copies map[string]map[string]*copied
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
		dir: o.Dir, now: o.Now, unknown: o.Unknown,
		tree: tree{
			limit: cmp.Or(o.MaxBytes, defaultMaxBytes), maxFile: cmp.Or(o.MaxFile, defaultMaxFile),
			top: &node{mode: files.Dir | 0o755}, base: make(map[string]look),
		},
	}
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

// WriteBack brings what changed into Options.Dir: first it looks whether each path there stands as the program found it, and writes
// nothing where one does not; then each file is replaced whole, so that whatever ends the process leaves each the old or the new.
// Permissions stay but for the owner's x, and a directory that is gone stays where it holds what the tree does not show.
//
// Errors: there is no directory; a *files.ConflictError or one that wraps ErrStale, which name the paths that others changed; what
// the host refuses, with what came before written. What lies in a .git is never written: where the program changed any of it, all
// else is written and the error says what was not. It is the last that is done with
// a tree: Diff comes before it.
func (f *FS) WriteBack() error {
	if f.dir == "" {
		return errors.New("overlay: write back: the tree has no directory: give one as Options.Dir")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, store, err := f.changes()
	if err != nil {
		return err
	}
	if err := files.Apply(f.dir, all, store, false); err != nil {
		return fmt.Errorf("overlay: write back: %w", err)
	}
	return leftInGit(all)
}

// leftInGit names the changes that Apply passes over.
func leftInGit(all []files.Change) error {
	var left []string
	for i := range all {
		if all[i].InGit() {
			left = append(left, all[i].Path)
		}
	}
	if len(left) == 0 {
		return nil
	}
	const named = 5
	text := strings.Join(left[:min(len(left), named)], ", ")
	if n := len(left) - named; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("overlay: write back: %s: Git's own files are never written, all others are", text)
}

// failed is the error of an operation on name, which came to p and there to err. What of the tree made it fail is recorded.
func (f *FS) failed(op, name string, p *place, err error) error {
	if f.rec != nil {
		var why *reason
		var errNote error
		if errors.As(err, &why) && why.own {
			errNote = f.noteLinks(p.links)
		} else if why != nil {
			errNote = f.noteStat(p)
		}
		if errNote != nil {
			return errNote
		}
	}
	f.told(err)
	return failure(op, name, err)
}

// told tells Options.Unknown of an error that is one. It is never called under tree.mu.
func (f *FS) told(err error) {
	var unknown *UnknownError
	if f.unknown != nil && errors.As(err, &unknown) {
		f.unknown(unknown)
	}
}

// Diff returns what changed since the tree began, as a patch that git apply takes; empty where nothing did. As Git does, it leaves
// out directories and what lies in a .git. It is no input of the program, and is not recorded.
//
// A file of the directory that others changed after the program did is an error that wraps ErrStale: what it was is not known.
func (f *FS) Diff() ([]byte, error) {
	f.mu.RLock()
	all, store, err := f.changes()
	f.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := files.WritePatch(&out, all, store); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ErrStale is wrapped by the refusal to say how a file changed that others have changed too.
var ErrStale = errors.New("it changed in the directory after the program changed it here")

// Copy makes dir, which is empty or not there, a copy of the tree as it is: files, directories and links, every file with the
// time that Stat says. A directory that it filled before, in which something has worked since, becomes a copy of the tree as it is now:
// what stands there as Copy left it, and is the same in the tree, stays, and all else comes anew or goes; who changed something there
// finds that out alone, and calls Apply. It is no input of the program, and is not recorded.
//
// Errors: dir holds something else; those of the host, after which it is not to be used again; of a tree from a tape what that does not know.
func (f *FS) Copy(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.copies, func(dir string, _ map[string]*copied) bool {
		_, err := os.Lstat(dir)
		return err != nil
	})
	was := f.copies[dir]
	open := os.OpenRoot
	if was == nil {
		open = files.OpenEmpty
	}
	delete(f.copies, dir)
	root, err := open(dir)
	if err != nil {
		return fmt.Errorf("overlay: copy: %w", err)
	}
	defer root.Close()
	c := copier{f: f, root: root, was: was, left: make(map[string]*copied)}
	top := step{".", f.top, f.low != nil}
	if err := c.dir(top.place()); err != nil {
		return fmt.Errorf("overlay: copy: %w", err)
	}
	if f.copies == nil {
		f.copies = make(map[string]map[string]*copied)
	}
	f.copies[dir] = c.left
	return nil
}

// Changed lists what became of a directory since Copy filled it, by path: what Apply takes. Of directories it names those alone that
// are gone, and new ones that are empty. What no tree holds, and more than 256 MiB of contents, is an error.
func (f *FS) Changed(dir string) ([]Change, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f.mu.RLock()
	c := changer{root: root, left: f.copies[dir], seen: make(map[string]bool), holds: make(map[string]bool)}
	f.mu.RUnlock()
	if err := fs.WalkDir(root.FS(), ".", c.visit); err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(c.all, func(x Change) bool { return x.Dir && c.holds[x.Path] })
	for name := range c.left {
		if !c.seen[name] {
			out = append(out, Change{Path: name, Deleted: true})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}
