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
	"github.com/tapedeck-dev/tapedeck/runtrace"
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
	runs  *runs
	files *runFiles

	checkpoints checkpoints
	mender      mender

	rotated chan struct{} // every syncEvery segments
	// rotations counts segments; the committer's alone.
	rotations int
	stop      chan struct{}
	work      sync.WaitGroup // keep, and appends whose callers went

	gate   sync.RWMutex // held for reading by whatever is under way
	closed bool

	failure atomic.Pointer[error]

	stats struct {
		started, turns, ended atomic.Int64
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
	s := &Disk{dir: dir, runs: &runs{table: newTable()}, rotated: make(chan struct{}, 1), stop: make(chan struct{})}
	if o != nil {
		s.o = *o
	}
	s.o.defaults()
	s.files = &runFiles{fileCache: newFileCache(s.o.Descriptors), dir: filepath.Join(dir, runsDir), fs: s.o.FS, log: s.o.Logger}
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
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.o.FS.MkdirAll(s.files.dir, 0o700); err != nil {
		return err
	}
	if err := s.take(); err != nil {
		return err
	}
	s.runs.folds = foldsNames(s.dir)
	log, err := seglog.Open(filepath.Join(s.dir, logDir), &seglog.Options{
		SegmentSize: s.o.Segment, FS: s.o.FS, Logger: s.o.Logger, Committed: s.o.Committed, Prepare: true, Rotated: s.onRotated})
	if err != nil {
		return err
	}
	s.log = log
	if s.index, err = openIndex(ctx, filepath.Join(s.dir, indexFile)); err != nil {
		return fmt.Errorf("open the index: %w", err)
	}
	s.runs.index = s.index
	s.checkpoints.dir, s.checkpoints.runs, s.checkpoints.files = s.dir, s.runs, s.files
	s.mender.o, s.mender.log, s.mender.runs, s.mender.files = &s.o, log, s.runs, s.files
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
		Files:   s.files.len(),
		Started: uint64(s.stats.started.Load()), Turns: uint64(s.stats.turns.Load()),
		Ended: uint64(s.stats.ended.Load()), Repairs: uint64(s.mender.repairs.Load()),
		Log: LogStats{Blocks: l.Blocks, Records: l.Records, Bytes: l.Bytes, SyncSeconds: l.Sync.Seconds()},
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
	s.runs.each(func(r *run) { r.endFeed() })
	return errors.Join(s.settle(ctx), s.release(ctx))
}

// settle brings everything to the disk, so that the next Open has nothing to compare.
func (s *Disk) settle(ctx context.Context) error {
	failed := s.Health()
	if err := s.log.Close(ctx); err != nil || failed != nil {
		return err // what the log holds is decided when it is opened again
	}
	if err := s.checkpoints.write(ctx, true); err != nil {
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
	s.runs.each(s.files.drop)
	if s.index != nil {
		errs = append(errs, s.index.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}

// keep writes the index behind what is appended, and has the files synced at times, until stop. It is the one goroutine that the
// store has beside the log's; Close ends it and waits for it.
func (s *Disk) keep(stop <-chan struct{}) {
	defer s.work.Done()
	tick := time.NewTicker(s.o.IndexEvery)
	defer tick.Stop()
	for {
		sync := false
		select {
		case <-stop:
			return
		case <-tick.C:
		case <-s.rotated:
			sync = true
		}
		if err := s.checkpoints.write(context.Background(), sync); err != nil {
			s.o.Logger.Error("the index could not be written; it is tried again", "error", err)
		}
	}
}

// errIndex says that the index does not belong to the log.
var errIndex = errors.New("the index does not fit the log")

// recover brings index and run files up to what the log holds, and ends what was left open.
func (s *Disk) recover(ctx context.Context) error {
	end := s.log.End() - 1
	m, err := s.index.meta(ctx)
	if err != nil {
		return err
	}
	s.checkpoints.synced = s.checkpoints.readSynced()
	if s.checkpoints.synced > end {
		s.checkpoints.synced = 0
	}
	s.checkpoints.applied = m.applied
	if m.applied > end {
		err = fmt.Errorf("%w: it holds %d entries, the log %d", errIndex, m.applied, end)
	} else {
		err = s.replay(ctx, end)
	}
	if err == nil {
		err = s.mender.mend(ctx, !m.clean || s.index.rebuilt != "")
	}
	if errors.Is(err, errIndex) && s.index.rebuilt == "" && ctx.Err() == nil { // else nobody knows whether it fits
		if err = s.startOver(ctx, end, err); err == nil {
			err = s.mender.mend(ctx, true)
		}
	}
	if err != nil {
		return err
	}
	if s.index.rebuilt != "" && end > 0 {
		s.o.Logger.Warn("the index was made again from the log", "why", s.index.rebuilt, "entries", uint64(end))
	}
	unclean := !m.clean || s.index.rebuilt != ""
	if err := s.index.setClean(ctx, false); err != nil {
		return err
	}
	if err := s.endOpen(ctx); err != nil || !unclean {
		return err
	}
	return s.checkpoints.write(ctx, true)
}

// startOver makes the index anew where what it says turned out wrong.
func (s *Disk) startOver(ctx context.Context, end seglog.Pos, why error) error {
	if err := s.index.close(); err != nil {
		return err
	}
	s.index.rebuilt = why.Error()
	s.runs.each(s.files.drop)
	if err := s.index.create(ctx); err != nil {
		return err
	}
	s.runs.table, s.checkpoints.applied = newTable(), 0
	s.checkpoints.verdicts.saved(len(s.checkpoints.verdicts.snapshot()))
	return s.replay(ctx, end)
}

// replay takes in the entries that the index or the files may lack.
func (s *Disk) replay(ctx context.Context, end seglog.Pos) error {
	from := min(s.checkpoints.applied, s.checkpoints.synced) + 1
	said, bytes := time.Now(), 0
	for rec, err := range s.log.Records(from) {
		if err != nil {
			return err
		}
		if err := s.takeIn(ctx, rec); err != nil {
			return fmt.Errorf("entry %d of the log: %w", rec.Pos, err)
		}
		s.checkpoints.lastDone.Store(uint64(rec.Pos))
		if bytes += len(rec.Data); bytes >= 32<<20 {
			bytes = 0
			if err := s.checkpoints.write(ctx, false); err != nil {
				return err
			}
		}
		if time.Since(said) > 200*time.Millisecond {
			said = time.Now()
			s.o.Progress(Progress{"reading the log", uint64(rec.Pos - from + 1), uint64(end - from + 1)})
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	s.checkpoints.lastDone.Store(uint64(end))
	if from <= end {
		s.o.Progress(Progress{"reading the log", uint64(end - from + 1), uint64(end - from + 1)})
	}
	return s.checkpoints.write(ctx, false)
}

// takeIn adds an entry to what is known of its run.
func (s *Disk) takeIn(ctx context.Context, rec seglog.Record) error {
	e, err := parseEntry(rec.Data)
	if err != nil {
		return err
	}
	if e.kind == kindVerdict {
		if rec.Pos > s.checkpoints.applied {
			s.checkpoints.verdicts.put(verdictRow{rec.Pos, e.id, string(e.data)})
		}
		return nil
	}
	r, err := s.runs.look(ctx, e.id.Run)
	if err != nil {
		return fmt.Errorf("%w: %w", errIndex, err)
	}
	defer r.unpin()
	r.dmu.Lock()
	defer r.dmu.Unlock()
	if rec.Pos > s.checkpoints.synced && r.check == nil {
		r.check = &span{rec.Pos, e.offset, e.crc}
	}
	st := &r.durable
	if e.kind != kindStarted && !st.of(e.id) {
		return fmt.Errorf("%w: run %s is not known", errIndex, e.id)
	}
	if st.exists() && e.offset < st.bytes {
		return nil // it was taken in before
	}
	if e.offset != st.bytes || e.crc != st.crc || e.turns != st.turns {
		return fmt.Errorf("%w: %s stands at byte %d with %d turns, the entry at byte %d with %d",
			errIndex, e.id, st.bytes, st.turns, e.offset, e.turns)
	}
	if e.kind == kindStarted {
		r.first = rec.Pos
	}
	r.dirty = true
	*st, err = st.after(&e)
	return err
}

// endOpen ends the runs that were left open: nobody will say how they went.
func (s *Disk) endOpen(ctx context.Context) error {
	ids, err := s.index.open(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	s.o.Logger.Info("runs were left open and are ended as incomplete", "runs", len(ids))
	next := make(chan runtrace.ID)
	errs := make([]error, 64)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for id := range next {
				if err := s.End(ctx, id, &runtrace.Ended{Status: runtrace.Incomplete}); err != nil {
					errs[i] = err
				}
			}
		}()
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	wait.Wait()
	return errors.Join(errs...)
}
