package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// A span is the part of a run from an entry on. While the store is opened it is what may not be in the run's file.
type span struct {
	pos    seglog.Pos // of the entry
	offset int64      // in the file
	crc    uint32     // of what stands before it
}

// A mender writes files again from the log that are not what it says.
type mender struct {
	o       *Options
	log     *seglog.Log
	runs    *runs
	files   *runFiles
	repairs atomic.Int64
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
func (s *mender) mend(ctx context.Context, all bool) error {
	var hurt []*damage
	var looked uint64
	var failed error
	s.runs.each(func(r *run) {
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
		if d := s.files.compare(st, first, *check); d != nil {
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

// measure adds the files whose length is wrong.
func (s *mender) measure(ctx context.Context, hurt []*damage) ([]*damage, error) {
	known := map[string]bool{}
	for _, d := range hurt {
		known[d.run.key] = true
	}
	var wrong []row
	n := uint64(0)
	err := s.runs.index.list(ctx, "", func(r row) error {
		if n++; n%10000 == 0 {
			s.o.Progress(Progress{"measuring files", n, n})
		}
		info, err := s.files.fs.Stat(s.files.path(r.state.head.id))
		if !known[r.key] && (err != nil || info.Size() != r.state.bytes) {
			wrong = append(wrong, r)
		}
		return ctx.Err()
	})
	for _, w := range wrong {
		r, lookErr := s.runs.look(ctx, w.state.head.id.Run)
		if lookErr != nil {
			return hurt, lookErr
		}
		hurt = append(hurt, &damage{run: r, from: span{pos: w.first}, why: "it was missing, or of another length"})
	}
	return hurt, err
}

// repair writes one run's file again. Its files lock is held.
func (s *mender) repair(ctx context.Context, r *run) error {
	_, first := r.settled()
	d := &damage{run: r, from: span{pos: first}, why: "it was found to be another when it was read"}
	s.files.drop(r)
	return s.rewrite(ctx, []*damage{d})
}

// saidRepairs is how many repairs are said one by one.
const saidRepairs = 20

// rewrite writes files again from the log, in one pass over it. Nobody else writes them.
func (s *mender) rewrite(ctx context.Context, hurt []*damage) error {
	if len(hurt) == 0 {
		return nil
	}
	byKey := map[string]*damage{}
	from := hurt[0].from.pos
	for i, d := range hurt {
		if err := s.files.cut(d); err != nil {
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
	s.repairs.Add(int64(len(hurt)))
	if err := s.refill(ctx, byKey, from); err != nil {
		return err
	}
	for _, d := range byKey {
		return fmt.Errorf("%w: it has %d bytes more of run %s than the log", errIndex, d.left, d.run.file.head.id)
	}
	return nil
}

// refill writes the entries of the runs in byKey to their files, and takes out of it each run that is whole.
func (s *mender) refill(ctx context.Context, byKey map[string]*damage, from seglog.Pos) error {
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
		d := byKey[s.runs.key(e.id.Run)]
		if e.kind == kindVerdict || d == nil || rec.Pos < d.from.pos || e.offset+int64(len(e.data)) > d.run.file.bytes {
			continue
		}
		if err := s.files.writeEntry(&e); err != nil {
			return err
		}
		if d.left -= int64(len(e.data)); d.left <= 0 {
			delete(byKey, d.run.key)
		}
	}
	return nil
}
