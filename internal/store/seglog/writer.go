package seglog

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

const nextName = "next.tmp"

// A writer writes the last segment. Open makes it, then the committer alone uses it.
type writer struct {
	dir      string
	fs       faultfs.FS
	log      *slog.Logger
	limit    int64 // bytes of a segment
	segment  segmentInfo
	f        faultfs.File
	end      int64  // behind the last block that is on the disk
	next     Pos    // behind its last record
	prev     uint32 // crc of its header, or of the segment's
	ahead    int64  // the file is as long as that, all zero behind end
	marks    markFile
	prepares bool      // whether segments are prepared
	coming   *preparer // of the next segment; nil where none is under way
	prepared bool      // this segment was
	starved  bool      // a write failed: nothing is prepared until a segment could be made again
	began    int64     // where it stood when this process began to write it
	failed   error     // ErrFailed and why: nothing is written any more
}

// full says whether a block of n bytes belongs into a new segment.
func (w *writer) full(n int) bool {
	limit := w.limit
	if !w.prepared && w.coming != nil && w.coming.ready.Load() {
		limit /= unpreparedShare
	}
	return w.end > segmentHeader && w.end+int64(n) > limit
}

// fail makes err the end of this writer.
func (w *writer) fail(err error) error {
	w.failed = fmt.Errorf("%w: %w", ErrFailed, err)
	return w.failed
}

// write brings a block to the disk and marks it as acknowledged. After an error nothing of it is there, or the error is
// ErrFailed.
func (w *writer) write(b *block) (writing, syncing time.Duration, err error) {
	began := time.Now()
	self := putBlockHeader(b.buf, &w.segment.salt, b.first, len(b.done), w.prev)
	if _, err := w.f.WriteAt(b.buf, w.end); err != nil { // a short write is an error too
		return 0, 0, w.cutBack(err)
	}
	written := time.Now()
	if err := w.f.Sync(); err != nil {
		return 0, 0, w.fail(err)
	}
	synced := time.Now()
	w.end += int64(len(b.buf))
	w.ahead = max(w.ahead, w.end)
	w.next, w.prev = b.first+Pos(len(b.done)), self
	w.mark()
	w.prepare()
	return written.Sub(began), synced.Sub(written), nil
}

// cutBack undoes a write that failed because of err, which it returns, or ErrFailed when that does not work.
func (w *writer) cutBack(err error) error {
	w.starve()
	if cut := w.f.Truncate(w.end); cut != nil {
		return w.fail(fmt.Errorf("%w; and cutting that off: %w", err, cut))
	}
	w.ahead, w.prepared = w.end, false
	if cut := w.f.Sync(); cut != nil {
		return w.fail(fmt.Errorf("%w; and cutting that off: %w", err, cut))
	}
	return err
}

// mark notes that everything up to end is acknowledged.
func (w *writer) mark() {
	if err := w.marks.write(mark{w.segment.first, w.end, w.next}); err != nil {
		w.log.Warn("the log's mark is not kept: after a crash, damage to its last records may look like a torn write",
			"error", err, "file", w.marks.f.Name())
	}
}

// rotate begins a new segment, for records from first on, and returns what its header says. After an error the old one is
// the last still, or the error is ErrFailed.
func (w *writer) rotate(first Pos) (segmentInfo, error) {
	s := newSegmentInfo(first, w.segment.first, w.end)
	if w.f != nil {
		w.trim()
	}
	prepared, ahead := w.takePrepared()
	f, err := w.create(&s, prepared)
	if err != nil {
		w.starve()
		return s, err
	}
	w.starved = false
	if w.f != nil {
		if err := w.f.Close(); err != nil {
			w.log.Warn("a full segment of the log does not close", "error", err, "file", w.f.Name())
		}
	}
	w.segment, w.f, w.prepared = s, f, prepared != ""
	w.end, w.ahead, w.next, w.prev = segmentHeader, max(segmentHeader, ahead), first, s.crc
	w.began = w.end
	return s, nil
}

// trim gives the space back that was prepared and is not needed. What stays is zero, and nobody reads it.
func (w *writer) trim() {
	if w.ahead == w.end {
		return
	}
	if err := w.f.Truncate(w.end); err != nil {
		w.log.Warn("prepared space of the log is not given back", "error", err, "file", w.f.Name())
		return
	}
	w.ahead = w.end
}

// create makes the file of a segment, of one that was prepared or else anew, all of it on the disk, and opens it. After an error
// nothing of it is there, or the error is ErrFailed.
func (w *writer) create(s *segmentInfo, prepared string) (faultfs.File, error) {
	temporary, name := prepared, filepath.Join(w.dir, segmentName(s.first))
	flags := os.O_RDWR
	if prepared == "" {
		temporary, flags = filepath.Join(w.dir, nextName), os.O_RDWR|os.O_CREATE|os.O_TRUNC
	}
	err := w.createHeader(temporary, flags, s.encode())
	if err == nil {
		err = w.fs.Rename(temporary, name)
	}
	if err != nil {
		return nil, w.remove(err, temporary, name) // a rename that fails may have happened
	}
	if err := w.fs.SyncDir(w.dir); err != nil {
		return nil, w.fail(err)
	}
	f, err := w.fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, w.remove(err, name)
	}
	return f, nil
}

// remove undoes a create that failed because of err, which it returns, or ErrFailed when that does not work: a segment that
// stays where the log goes on without it would break the chain.
func (w *writer) remove(err error, names ...string) error {
	if errors.Is(err, ErrFailed) {
		return err
	}
	for _, name := range names {
		if removed := w.fs.Remove(name); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			return w.fail(fmt.Errorf("%w; and removing what was made: %w", err, removed))
		}
	}
	if synced := w.fs.SyncDir(w.dir); synced != nil {
		return w.fail(fmt.Errorf("%w; and removing what was made: %w", err, synced))
	}
	return err
}

func (w *writer) createHeader(name string, flags int, header []byte) error {
	f, err := w.fs.OpenFile(name, flags, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(header, 0); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return w.fail(err)
	}
	return f.Close()
}

// finish closes the files, exactly as long as what they hold.
func (w *writer) finish() error {
	w.stopPreparing()
	err := w.failed
	if err == nil {
		w.trim()
		err = errors.Join(w.f.Sync(), w.marks.f.Sync())
	}
	return errors.Join(err, w.close())
}

// close closes what is open.
func (w *writer) close() error {
	var errs []error
	if w.f != nil {
		errs = append(errs, w.f.Close())
	}
	if w.marks.f != nil {
		errs = append(errs, w.marks.f.Close())
	}
	return errors.Join(errs...)
}

const (
	aheadName   = "ahead.tmp" // the segment that is being prepared
	prepareStep = 4 << 20     // bytes that are made and synced at a time
	// unpreparedShare is which part of its limit a segment takes that was not prepared itself, once the next one is.
	unpreparedShare = 8
)

// A preparer makes the file of the next segment while the committer fills the last one: all zero, and written as such. A sync
// of what is written over it has nothing to tell the file system, and waits for no other file's journal; space that is only
// allocated takes a commit of the journal for every block.
//
// Its goroutine writes as far as the committer asks, which asks in proportion to what it writes itself, so that the disk is not
// taken by zeros. It ends when the file is whole, fails, or is no longer wanted; stop waits for it.
type preparer struct {
	fs    faultfs.FS
	log   *slog.Logger
	name  string
	size  int64
	asked int64      // by the committer
	want  chan int64 // bytes; the last one counts
	ended chan struct{}
	ready atomic.Bool // the file is whole and on the disk
}

func newPreparer(w *writer) *preparer {
	p := &preparer{fs: w.fs, log: w.log, name: filepath.Join(w.dir, aheadName), size: w.limit,
		want: make(chan int64, 1), ended: make(chan struct{})}
	go p.run()
	return p
}

func (p *preparer) run() {
	defer close(p.ended)
	err := p.make()
	if err == nil {
		return
	}
	p.log.Debug("no segment of the log is prepared", "error", err, "file", p.name)
	p.fs.Remove(p.name) // Open removes it too
}

var errUnwanted = fmt.Errorf("the log is being closed")

func (p *preparer) make() error {
	f, err := p.fs.OpenFile(p.name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := p.fill(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	p.ready.Store(true)
	return nil
}

func (p *preparer) fill(f faultfs.File) error {
	zeros := make([]byte, min(1<<20, p.size))
	for at := int64(0); at < p.size; {
		want, ok := <-p.want
		if !ok {
			return errUnwanted
		}
		for at < want {
			n, err := f.WriteAt(zeros[:min(int64(len(zeros)), want-at)], at)
			if err != nil {
				return err
			}
			at += int64(n)
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// ask says how far the file should be. It waits for nobody.
func (p *preparer) ask(bytes int64) {
	bytes = min(bytes/prepareStep*prepareStep, p.size)
	if p.size-bytes < prepareStep {
		bytes = p.size
	}
	if bytes <= p.asked {
		return
	}
	p.asked = bytes
	select {
	case <-p.want: // it did not come to that one
	default:
	}
	p.want <- bytes
}

// stop ends the preparer and waits for it. A file that is whole is removed too.
func (p *preparer) stop() {
	close(p.want)
	<-p.ended
	if p.ready.Load() {
		p.fs.Remove(p.name) // Open removes it too
	}
}

// prepare has the next segment prepared in proportion to what was written to this one. What is not prepared itself is left
// soon, so that its successor must be ready soon.
func (w *writer) prepare() {
	if !w.prepares || w.starved {
		return
	}
	if w.coming == nil {
		w.coming = newPreparer(w)
	}
	pace := int64(2)
	if !w.prepared {
		pace = 2 * unpreparedShare
	}
	w.coming.ask((w.end - w.began) * pace)
}

// takePrepared returns the name of a file that is ready to become the next segment, and its length. It is then the caller's.
// Where preparing failed it is tried again for the segment after.
func (w *writer) takePrepared() (name string, size int64) {
	p := w.coming
	if p == nil {
		return "", 0
	}
	select {
	case <-p.ended:
	default:
		if !p.ready.Load() {
			return "", 0
		}
		<-p.ended
	}
	w.coming = nil
	if !p.ready.Load() {
		return "", 0
	}
	return p.name, p.size
}

// starve gives back what is being prepared, for where a write fails its space may be what is missing.
func (w *writer) starve() {
	w.starved = true
	w.stopPreparing()
}

// stopPreparing gives back what is being prepared.
func (w *writer) stopPreparing() {
	if w.coming != nil {
		w.coming.stop()
		w.coming = nil
	}
}
