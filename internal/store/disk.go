package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// What stands in the directory.
const (
	lockFile   = "lock"
	logDir     = "log"
	indexFile  = "index.sqlite"
	syncedFile = "synced"
	runsDir    = "runs"
)

// Options say how a store is kept. Nil and zero work.
type Options struct {
	Logger      *slog.Logger  // nil: silent
	IndexEvery  time.Duration // how far the index may be behind; 0 means 5 s
	Descriptors int           // of run files that stay open; 0 means 64
	// Progress is called while the store is opened and there is much to read, a few times a second and once at its end.
	Progress func(Progress)
	// Committed is called after each block of the log, by its committer: it must be quick.
	Committed func(seglog.Batch)
	FS        faultfs.FS // of the log and the run files; nil: the machine's
	Segment   int64      // bytes of a file of the log; 0: its default
}

// A Progress says how far opening a store has come.
type Progress struct {
	Phase       string // in words
	Done, Total uint64 // of entries of the log, or runs
}

// Disk is a Store in a directory. The package comment says how.
type Disk struct {
	dir   string
	o     Options
	lock  *flock.Flock
	log   *seglog.Log
	index *index
	table *table
	files *fileCache
	fs    faultfs.FS
	folds bool // the file system takes A and a for the same name

	lastDone atomic.Uint64 // the log's position of the last entry that is durable, and known to its run
	rotated  chan struct{} // every syncEvery segments
	// rotations counts segments; the committer's alone.
	rotations int
	stop      chan struct{}
	work      sync.WaitGroup // keep, and appends whose callers went

	gate   sync.RWMutex // held for reading by whatever is under way
	closed bool

	failure  atomic.Pointer[error]
	verdicts pendingVerdicts

	checkpoints     sync.Mutex // one at a time
	applied, synced seglog.Pos

	stats struct {
		open, started, turns, ended, repairs atomic.Int64
	}
}

var _ Store = (*Disk)(nil)

// A LockedError says that another process has the store open.
type LockedError struct {
	Dir string
	PID int // 0 where it is not known
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the data directory %s is in use by %s: stop that daemon, or give this one a directory of its own", e.Dir, who)
}

// Open opens the store in dir, which is made if need be. After a crash it brings the run files and the index in order, which
// takes as long as the log is read that was not known to be in them; runs that were left open are ended as incomplete. Errors:
// *LockedError, *seglog.DamageError, those of the system.
func Open(ctx context.Context, dir string, o *Options) (*Disk, error) {
	s := &Disk{dir: dir, table: newTable(), rotated: make(chan struct{}, 1), stop: make(chan struct{})}
	if o != nil {
		s.o = *o
	}
	s.o.defaults()
	s.fs = s.o.FS
	s.files = newFileCache(s.o.Descriptors)
	if err := s.open1(ctx); err != nil {
		return nil, errors.Join(err, s.release(ctx))
	}
	s.work.Add(1)
	go s.keep(s.stop)
	return s, nil
}

func (o *Options) defaults() {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.IndexEvery <= 0 {
		o.IndexEvery = 5 * time.Second
	}
	if o.Descriptors <= 0 {
		o.Descriptors = 64
	}
	if o.FS == nil {
		o.FS = faultfs.OS
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
}

// open1 opens the parts, from the lock on.
func (s *Disk) open1(ctx context.Context) error {
	runs := filepath.Join(s.dir, runsDir)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.fs.MkdirAll(runs, 0o700); err != nil {
		return err
	}
	if err := s.take(); err != nil {
		return err
	}
	s.folds = foldsNames(s.dir)
	log, err := seglog.Open(filepath.Join(s.dir, logDir), &seglog.Options{
		SegmentSize: s.o.Segment, FS: s.fs, Logger: s.o.Logger, Committed: s.o.Committed, Prepare: true, Rotated: s.onRotated})
	if err != nil {
		return err
	}
	s.log = log
	if s.index, err = openIndex(ctx, filepath.Join(s.dir, indexFile)); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	return s.recover(ctx)
}

// syncEvery is after how many segments of the log the run files are synced: recovery reads that much, and each sync has the
// disk busy with every file that was appended to.
const syncEvery = 4

func (s *Disk) onRotated(seglog.Pos) {
	if s.rotations++; s.rotations%syncEvery != 0 {
		return
	}
	select {
	case s.rotated <- struct{}{}:
	default: // the last one was not looked at yet
	}
}

// take locks the directory, and leaves our number in it for others to name.
func (s *Disk) take() error {
	path := filepath.Join(s.dir, lockFile)
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	got, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	if !got {
		b, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return &LockedError{s.dir, pid}
	}
	s.lock = lock
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600); err != nil {
		s.o.Logger.Debug("the lock does not name this process", "error", err) // some systems lock the bytes too
	}
	return nil
}

// foldsNames reports whether the file system of dir takes names that differ in case alone for the same.
func foldsNames(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, strings.ToUpper(lockFile)))
	return err == nil
}

// key is what a run goes by: its id, which no two agents share, nor two files.
func (s *Disk) key(run string) string {
	if s.folds {
		return strings.ToLower(run)
	}
	return run
}

// enter keeps the store open until leave.
func (s *Disk) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.gate.RLock()
	if s.closed {
		s.gate.RUnlock()
		return ErrClosed
	}
	return nil
}

func (s *Disk) leave() { s.gate.RUnlock() }

// failed notes an error of the log that will not go away, and returns it.
func (s *Disk) failed(err error) error {
	if errors.Is(err, seglog.ErrFailed) && s.failure.CompareAndSwap(nil, &err) {
		s.o.Logger.Error("the log failed: nothing more is acknowledged until the store is opened again", "error", err)
	}
	return err
}

// Health is that of Store.
func (s *Disk) Health() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Stats is that of Store.
func (s *Disk) Stats() Stats {
	l := s.log.Stats()
	return Stats{
		Open: int(s.stats.open.Load()), Files: s.files.len(),
		Started: uint64(s.stats.started.Load()), Turns: uint64(s.stats.turns.Load()),
		Ended: uint64(s.stats.ended.Load()), Repairs: uint64(s.stats.repairs.Load()),
		Log: LogStats{Blocks: l.Blocks, Records: l.Records, Bytes: l.Bytes, SyncSeconds: l.Sync.Seconds(), QueuedBytes: l.Queued},
	}
}

// Close is that of Store. When ctx ends first, the store is left as a crash would leave it.
func (s *Disk) Close(ctx context.Context) error {
	locked := make(chan struct{})
	go func() { // ends when everything under way has
		s.gate.Lock()
		close(locked)
	}()
	select {
	case <-locked:
	case <-ctx.Done():
		go func() { <-locked; s.gate.Unlock() }()
		return ctx.Err()
	}
	was := s.closed
	s.closed = true
	s.gate.Unlock()
	if was {
		return ErrClosed
	}
	close(s.stop)
	s.work.Wait()
	s.table.each(func(r *run) { r.endFeed() })
	return errors.Join(s.settle(ctx), s.release(ctx))
}

// endFeed ends the subscriptions of a run.
func (r *run) endFeed() {
	r.files.Lock()
	defer r.files.Unlock()
	for sub := range r.feed {
		sub.finish()
	}
	r.feed = nil
}

// settle brings everything to the disk, so that the next Open has nothing to compare.
func (s *Disk) settle(ctx context.Context) error {
	failed := s.Health()
	if err := s.log.Close(ctx); err != nil || failed != nil {
		return err // what the log holds is decided when it is opened again
	}
	if err := s.checkpoint(ctx, true); err != nil {
		return err
	}
	return s.index.setClean(ctx, true)
}

// release closes what is open.
func (s *Disk) release(ctx context.Context) error {
	var errs []error
	if s.log != nil {
		s.log.Close(ctx) // where it is closed, settle has said how that went
	}
	s.table.each(s.files.drop)
	if s.index != nil {
		errs = append(errs, s.index.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}
