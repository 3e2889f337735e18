package seglog

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

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
