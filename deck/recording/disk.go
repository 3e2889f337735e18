package recording

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// Who makes a recording is known by a lock: its recorder holds an exclusive flock on the recording's directory from
// before recording.json is there until it ends, however it ends; the kernel lets go of it with the process. The lock is
// the directory's, not its path's, and says nothing about a finished recording, which nobody writes to. Where a file
// system or a system has no such locks the recorder does without, and nobody can tell whether it lives.

// ErrLive is wrapped by the refusal to touch a recording that is being made.
var ErrLive = errors.New("is being recorded")

// A Liveness says whether somebody is at work on a recording.
type Liveness uint8

// The degrees of liveness.
const (
	LiveUnknown Liveness = iota // this system, or this file system, has no locks to tell by
	LiveNo                      // finished, or its recorder is gone
	LiveYes
)

// Why a lock cannot be had.
var (
	ErrHeld    = errors.New("somebody else holds the lock")
	ErrNoLocks = errors.New("no locks here")
)

// Live reports whether the recorder of r is at work. It looks at the disk again, not at what r was when it was opened.
func (r *Recording) Live() Liveness {
	m, err := ReadManifest(r.Dir)
	if err == nil && m.State == StateFinished {
		return LiveNo
	}
	f, err := lockShared(r.Dir)
	switch {
	case err == nil:
		Unlock(f)
		return LiveNo
	case errors.Is(err, ErrHeld):
		return LiveYes
	}
	return LiveUnknown
}

// claimWait is how long a recorder waits for somebody who cleans up in the directory that it was given.
const claimWait = 2 * time.Second

// Claim makes dir, which must be empty where it is there, opens it and, where there are locks, locks it.
func Claim(dir string) (*os.File, error) {
	for deadline := time.Now().Add(claimWait); ; time.Sleep(10 * time.Millisecond) {
		f, err := tryClaim(dir)
		switch waited := time.Now().After(deadline); {
		case errors.Is(err, ErrNoLocks):
			return os.Open(dir)
		case errors.Is(err, ErrHeld) && waited:
			return nil, fmt.Errorf("%s %w: name another directory", dir, ErrLive)
		case err == nil, waited, !errors.Is(err, ErrHeld) && !errors.Is(err, os.ErrNotExist):
			return f, err
		}
	}
}

// tryClaim is one try of claim. That dir does not exist means that it was removed, as one that no recorder had begun in,
// before it was locked.
func tryClaim(dir string) (*os.File, error) {
	if err := MakeEmpty(dir); err != nil {
		return nil, err
	}
	f, err := LockExclusive(dir)
	if err != nil {
		return nil, err
	}
	if !Still(f, dir) {
		err = os.ErrNotExist
	} else {
		err = MakeEmpty(dir) // somebody else may have filled it before
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Still reports whether f is what stands at path.
func Still(f *os.File, path string) bool {
	have, err1 := f.Stat()
	want, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(have, want)
}

// MakeEmpty makes dir; one that is there must be empty.
func MakeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) > 0 {
		return fmt.Errorf("%s is not empty: name a new directory, or remove it first", dir)
	}
	return err
}

// A Temp is a directory that nobody takes for a leftover while its lock is held.
type Temp struct {
	Dir  string
	lock *os.File // nil where there are none
}

// NewTemp makes one whose name begins so. Those of the same beginning that killed processes left there go.
func NewTemp(parent, prefix string) (*Temp, error) {
	RemoveStale(StaleTemps(parent, prefix))
	for {
		dir, err := os.MkdirTemp(parent, prefix+"*")
		if err != nil {
			return nil, err
		}
		lock, err := LockExclusive(dir)
		if errors.Is(err, ErrNoLocks) || err == nil && Still(lock, dir) {
			return &Temp{dir, lock}, nil
		}
		Unlock(lock)
		if err != nil && !errors.Is(err, ErrHeld) && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
}

// Remove deletes what is left of it, and then lets go of its lock. After an error the next NewTemp removes it.
func (t *Temp) Remove() error {
	defer Unlock(t.lock)
	return os.RemoveAll(t.Dir)
}

// StaleTemps lists the directories of NewTemp, by the beginnings of their names, that nobody holds. Where there are no locks nothing is
// known to be left.
func StaleTemps(dir string, prefixes ...string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil // nothing to clean up is no reason to fail
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // of many, in no order: temporary directories are full
	var out []string
	for _, n := range names {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(n, p) }) {
			continue
		}
		path := filepath.Join(dir, n)
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		if f, err := LockExclusive(path); err == nil {
			f.Close()
			out = append(out, path)
		}
	}
	return out
}

// RemoveStale deletes directories that nobody holds, as far as that goes.
func RemoveStale(dirs []string) {
	for _, d := range dirs {
		if f, err := LockExclusive(d); err == nil {
			os.RemoveAll(d)
			f.Close()
		}
	}
}

// An Inode is what the names of one file share.
type Inode struct{ dev, ino uint64 }

// NotLock is err, unless it is that of a lock that could not be had.
func NotLock(err error) error {
	if errors.Is(err, ErrHeld) || errors.Is(err, ErrNoLocks) {
		return nil
	}
	return err
}

// Gone is err, unless it says that something was removed while it was looked at.
func Gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// NotEOF is err, unless it is the end of what was read.
func NotEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Exists reports whether anything stands at path, a link that leads nowhere too.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// IsDir reports whether path leads to a directory.
func IsDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// ReadBounded reads a whole file of at most limit bytes.
func ReadBounded(path string, limit int64) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if st, err := f.Stat(); err == nil {
		b.Grow(int(min(st.Size(), limit)) + bytes.MinRead) // one that grows meanwhile is read all the same
	}
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%s: longer than %d bytes", path, limit)
	}
	return b.Bytes(), nil
}

// IsMissing reports that a blob is not in its store.
func IsMissing(err error) bool {
	var missing *cas.MissingError
	return errors.As(err, &missing)
}

// WriteWith writes a file atomically through a buffer.
func WriteWith(path string, fill func(io.Writer) error, sync bool) error {
	return writeWith(path, fill, &durable.Options{Mode: 0o644, Sync: sync})
}

// WritePrivate is WriteWith for what nobody else on the machine is to read.
func WritePrivate(path string, fill func(io.Writer) error) error {
	return writeWith(path, fill, &durable.Options{Mode: 0o600})
}

func writeWith(path string, fill func(io.Writer) error, o *durable.Options) error {
	f, err := durable.Create(filepath.Dir(path), o)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(fill(w), w.Flush()); err != nil {
		f.Discard()
		return err
	}
	return f.Commit(path)
}

// Each calls do for 0 to n-1, so many at once, until ctx ends. 0 jobs are as many as there are processors.
func Each(ctx context.Context, n, jobs int, do func(i int)) {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, jobs) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}
