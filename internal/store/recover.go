package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// A span is the part of a run from an entry on. While the store is opened it is what may not be in the run's file.
type span struct {
	pos    seglog.Pos // of the entry
	offset int64      // in the file
	crc    uint32     // of what stands before it
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
	s.synced = s.readSynced()
	if s.synced > end {
		s.synced = 0
	}
	s.applied = m.applied
	if m.applied > end {
		err = fmt.Errorf("%w: it holds %d entries, the log %d", errIndex, m.applied, end)
	} else {
		err = s.replay(ctx, end)
	}
	if errors.Is(err, errIndex) && ctx.Err() == nil { // else nobody knows whether it fits
		err = s.startOver(ctx, end, err)
	}
	if err != nil {
		return err
	}
	if s.index.rebuilt != "" && end > 0 {
		s.o.Logger.Warn("the index was made again from the log", "why", s.index.rebuilt, "entries", uint64(end))
	}
	unclean := !m.clean || s.index.rebuilt != ""
	if err := s.mend(ctx, unclean); err != nil {
		return err
	}
	if err := s.index.setClean(ctx, false); err != nil {
		return err
	}
	if err := s.endOpen(ctx); err != nil || !unclean {
		return err
	}
	return s.checkpoint(ctx, true)
}

// startOver makes the index anew where what it says turned out wrong.
func (s *Disk) startOver(ctx context.Context, end seglog.Pos, why error) error {
	if err := s.index.close(); err != nil {
		return err
	}
	s.index.rebuilt = why.Error()
	if err := s.index.create(ctx); err != nil {
		return err
	}
	s.table, s.applied = newTable(), 0
	s.verdicts.saved(len(s.verdicts.snapshot()))
	return s.replay(ctx, end)
}

// replay takes in the entries that the index or the files may lack.
func (s *Disk) replay(ctx context.Context, end seglog.Pos) error {
	from := min(s.applied, s.synced) + 1
	said, bytes := time.Now(), 0
	for rec, err := range s.log.Records(from) {
		if err != nil {
			return err
		}
		if err := s.takeIn(ctx, rec); err != nil {
			return fmt.Errorf("entry %d of the log: %w", rec.Pos, err)
		}
		s.lastDone.Store(uint64(rec.Pos))
		if bytes += len(rec.Data); bytes >= 32<<20 {
			bytes = 0
			if err := s.checkpoint(ctx, false); err != nil {
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
	s.lastDone.Store(uint64(end))
	if from <= end {
		s.o.Progress(Progress{"reading the log", uint64(end - from + 1), uint64(end - from + 1)})
	}
	return s.checkpoint(ctx, false)
}

// takeIn adds an entry to what is known of its run.
func (s *Disk) takeIn(ctx context.Context, rec seglog.Record) error {
	e, err := parseEntry(rec.Data)
	if err != nil {
		return err
	}
	if e.kind == kindVerdict {
		if rec.Pos > s.applied {
			s.verdicts.put(verdictRow{rec.Pos, e.id, string(e.data)})
		}
		return nil
	}
	r, err := s.look(ctx, e.id.Run)
	if err != nil {
		return fmt.Errorf("%w: %w", errIndex, err)
	}
	defer r.unpin()
	r.dmu.Lock()
	defer r.dmu.Unlock()
	if rec.Pos > s.synced && r.check == nil {
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

// after is the state with one more entry.
func (s state) after(e *entry) (state, error) {
	if e.kind == kindTurns {
		return s.grown(e.data, e.added), nil
	}
	rec, err := runtrace.Parse(e.data)
	switch {
	case err != nil:
		return s, err
	case e.kind == kindStarted && rec.Started != nil && rec.Started.ID() == e.id:
		return begun(rec.Started, e.data), nil
	case e.kind == kindEnded && rec.Ended != nil:
		return s.ended(rec.Ended, e.data), nil
	}
	return s, errEntry
}

// A damage is a file that is to be written again from a place on.
type damage struct {
	run  *run // pinned
	from span
	left int64
	why  string
}

// mend compares the run files with what the log says and writes again what differs. With all, it looks at the length of every
// file; what was appended since the last sync it looks at in any case, whole.
func (s *Disk) mend(ctx context.Context, all bool) error {
	var hurt []*damage
	var looked uint64
	var failed error
	s.table.each(func(r *run) {
		st, first := r.settled()
		r.files.Lock()
		r.file = st
		r.files.Unlock()
		check := r.check
		if check == nil || !st.exists() || failed != nil {
			return
		}
		r.check = nil
		if failed = ctx.Err(); failed != nil {
			return
		}
		if looked++; looked%1000 == 0 {
			s.o.Progress(Progress{"comparing files", looked, looked})
		}
		if d := s.compare(st, first, *check); d != nil {
			r.pin()
			d.run = r
			hurt = append(hurt, d)
		}
	})
	if failed == nil && all {
		hurt, failed = s.measure(ctx, hurt)
	}
	defer func() {
		for _, d := range hurt {
			d.run.unpin()
		}
	}()
	if failed != nil {
		return failed
	}
	return s.rewrite(ctx, hurt)
}

// compare looks at a whole file. It returns nil where it is what st says.
func (s *Disk) compare(st state, first seglog.Pos, check span) *damage {
	whole := span{pos: first}
	f, err := s.fs.OpenFile(s.path(st.head.id), os.O_RDONLY, 0)
	if err != nil {
		return &damage{from: whole, why: err.Error()}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return &damage{from: whole, why: err.Error()}
	}
	crc, n, err := sum(io.NewSectionReader(f, 0, check.offset), 0)
	if err != nil || n != check.offset || crc != check.crc {
		return &damage{from: whole, why: "what was written before the last sync is not there as it was"}
	}
	crc, n, err = sum(io.NewSectionReader(f, check.offset, st.bytes-check.offset), crc)
	switch {
	case err != nil:
		return &damage{from: check, why: err.Error()}
	case n != st.bytes-check.offset:
		return &damage{from: check, why: fmt.Sprintf("%d bytes were missing", st.bytes-check.offset-n)}
	case crc != st.crc:
		return &damage{from: check, why: "its last lines were not what was written"}
	case info.Size() > st.bytes:
		return &damage{from: check, why: fmt.Sprintf("%d bytes stood behind what was written", info.Size()-st.bytes)}
	}
	return nil
}

// measure adds the files whose length is wrong.
func (s *Disk) measure(ctx context.Context, hurt []*damage) ([]*damage, error) {
	known := map[string]bool{}
	for _, d := range hurt {
		known[d.run.key] = true
	}
	var wrong []row
	n := uint64(0)
	err := s.index.list(ctx, "", func(r row) error {
		if n++; n%10000 == 0 {
			s.o.Progress(Progress{"measuring files", n, n})
		}
		info, err := s.fs.Stat(s.path(r.state.head.id))
		if !known[r.key] && (err != nil || info.Size() != r.state.bytes) {
			wrong = append(wrong, r)
		}
		return ctx.Err()
	})
	for _, w := range wrong {
		r, lookErr := s.look(ctx, w.state.head.id.Run)
		if lookErr != nil {
			return hurt, lookErr
		}
		hurt = append(hurt, &damage{run: r, from: span{pos: w.first}, why: "it was missing, or of another length"})
	}
	return hurt, err
}

// repair writes one run's file again. Its files lock is held.
func (s *Disk) repair(ctx context.Context, r *run) error {
	_, first := r.settled()
	d := &damage{run: r, from: span{pos: first}, why: "it was found to be another when it was read"}
	s.files.drop(r)
	return s.rewrite(ctx, []*damage{d})
}

// saidRepairs is how many repairs are said one by one.
const saidRepairs = 20

// rewrite writes files again from the log, in one pass over it. Nobody else writes them.
func (s *Disk) rewrite(ctx context.Context, hurt []*damage) error {
	if len(hurt) == 0 {
		return nil
	}
	byKey := map[string]*damage{}
	from := hurt[0].from.pos
	for i, d := range hurt {
		if err := s.cut(d); err != nil {
			return err
		}
		if d.left > 0 {
			byKey[d.run.key] = d
		}
		from = min(from, d.from.pos)
		if i < saidRepairs {
			s.o.Logger.Warn("a run's file is written again from the log", "run", d.run.file.head.id.String(), "from_byte", d.from.offset, "why", d.why)
		}
	}
	if len(hurt) > saidRepairs {
		s.o.Logger.Warn("and more files", "all", len(hurt))
	}
	s.stats.repairs.Add(int64(len(hurt)))
	if err := s.refill(ctx, byKey, from); err != nil {
		return err
	}
	for _, d := range byKey {
		return fmt.Errorf("the log has not all of run %s: %d bytes of its file are missing", d.run.file.head.id, d.left)
	}
	return nil
}

// cut makes a file end where it is to be written again.
func (s *Disk) cut(d *damage) error {
	st := &d.run.file
	d.left = st.bytes - d.from.offset
	path := s.path(st.head.id)
	if err := s.fs.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := s.fs.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(d.from.offset), f.Close())
}

// refill writes the entries of the runs in byKey to their files, and takes out of it each run that is whole.
func (s *Disk) refill(ctx context.Context, byKey map[string]*damage, from seglog.Pos) error {
	end := s.log.End() - 1
	said := time.Now()
	for rec, err := range s.log.Records(from) {
		if err != nil {
			return err
		}
		if len(byKey) == 0 {
			return nil
		}
		if time.Since(said) > 200*time.Millisecond {
			said = time.Now()
			s.o.Progress(Progress{"writing files again", uint64(rec.Pos - from + 1), uint64(end - from + 1)})
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		e, err := parseEntry(rec.Data)
		if err != nil {
			return fmt.Errorf("entry %d of the log: %w", rec.Pos, err)
		}
		d := byKey[s.key(e.id.Run)]
		if e.kind == kindVerdict || d == nil || rec.Pos < d.from.pos || e.offset+int64(len(e.data)) > d.run.file.bytes {
			continue
		}
		if err := s.writeEntry(&e); err != nil {
			return err
		}
		if d.left -= int64(len(e.data)); d.left <= 0 {
			delete(byKey, d.run.key)
		}
	}
	return nil
}

func (s *Disk) writeEntry(e *entry) error {
	f, err := s.fs.OpenFile(s.path(e.id), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(e.data, e.offset)
	return errors.Join(err, f.Close())
}

// endOpen ends the runs that were left open: nobody will say how they went.
func (s *Disk) endOpen(ctx context.Context) error {
	ids, err := s.index.open(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	s.o.Logger.Info("runs were left open and are ended as incomplete", "runs", len(ids))
	s.stats.open.Store(int64(len(ids)))
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

// sum reads all of r into a checksum that has begun with crc.
func sum(r io.Reader, crc uint32) (uint32, int64, error) {
	h := &crcWriter{crc}
	n, err := io.Copy(h, r)
	return h.crc, n, err
}
