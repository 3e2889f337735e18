package store

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// pendingVerdicts are those that are durable and not in the index yet.
type pendingVerdicts struct {
	mu    sync.Mutex
	rows  []verdictRow
	bytes int
}

func (p *pendingVerdicts) add(o *op) {
	e, err := parseEntry(o.record)
	if err != nil {
		return // it was made by appendHead
	}
	p.put(verdictRow{o.pos, e.id, string(e.data)})
}

func (p *pendingVerdicts) put(v verdictRow) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = append(p.rows, v)
	p.bytes += len(v.verdict)
}

// maxPending bounds the bytes of verdicts that wait for the index.
const maxPending = 8 << 20

func (p *pendingVerdicts) tooMany() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes > maxPending
}

// snapshot is what is pending now; it is not changed any more.
func (p *pendingVerdicts) snapshot() []verdictRow {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows[:len(p.rows):len(p.rows)]
}

// saved forgets the first n.
func (p *pendingVerdicts) saved(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, v := range p.rows[:n] {
		p.bytes -= len(v.verdict)
	}
	p.rows = p.rows[n:]
}

// checkpoints bring the index and the disk up to what the log holds.
type checkpoints struct {
	dir      string
	runs     *runs
	files    *runFiles
	verdicts pendingVerdicts
	lastDone atomic.Uint64 // the log's position of the last entry that is durable, and known to its run

	mu              sync.Mutex // one at a time
	applied, synced seglog.Pos
}

// write brings the index up to what is durable now. With sync the files are brought to the disk too, so that recovery
// begins to compare them here.
func (s *checkpoints) write(ctx context.Context, sync bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	upto := seglog.Pos(s.lastDone.Load()) // each entry up to here is in its run's durable, and ready or written
	if sync {
		if err := s.syncFiles(upto); err != nil {
			return err
		}
	}
	verdicts := s.verdicts.snapshot()
	rows, runs := s.runs.takeDirty()
	err := error(nil)
	if len(rows)+len(verdicts) > 0 || upto > s.applied {
		err = s.runs.index.save(ctx, rows, verdicts, upto)
	}
	for _, r := range runs {
		if err != nil {
			r.dmu.Lock()
			r.dirty = true
			r.dmu.Unlock()
		}
		r.unpin()
	}
	if err != nil {
		return err
	}
	s.verdicts.saved(len(verdicts))
	s.applied = upto
	return nil
}

// syncFiles brings every run file to the disk, as far as the log up to a position goes, and notes that. Without it recovery
// would compare all there are.
func (s *checkpoints) syncFiles(upto seglog.Pos) error {
	if upto == s.synced {
		return nil
	}
	var failed error
	s.runs.each(func(r *run) {
		if err := s.files.write(r); err != nil {
			failed = err
		}
	})
	if failed == nil {
		failed = s.files.fs.SyncAll(s.files.dir)
	}
	if failed == nil {
		failed = s.writeSynced(upto)
	}
	if failed != nil {
		return failed
	}
	s.synced = upto
	return nil
}

// readSynced reads up to which position of the log the run files are known to be on the disk. 0 is nothing.
func (s *checkpoints) readSynced() seglog.Pos {
	f, err := s.files.fs.OpenFile(filepath.Join(s.dir, syncedFile), os.O_RDONLY, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 63)
	if err != nil {
		return 0
	}
	return seglog.Pos(n)
}

// writeSynced replaces what readSynced reads, so that it survives the loss of power, old or new.
func (s *checkpoints) writeSynced(pos seglog.Pos) error {
	path := filepath.Join(s.dir, syncedFile)
	temp := path + ".tmp"
	f, err := s.files.fs.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(strconv.AppendUint(nil, uint64(pos), 10), '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.files.fs.Rename(temp, path); err != nil {
		return err
	}
	return s.files.fs.SyncDir(s.dir)
}
