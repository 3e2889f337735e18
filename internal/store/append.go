package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// An op is an entry on its way: queued in the log, durable, in the run's file.
type op struct {
	store  *Disk
	run    *run
	kind   byte
	record []byte  // the entry, of a verdict alone
	data   []byte  // the entry's lines
	buffer *[]byte // holds data, for the next op to use; nil where it has memory of its own
	after  state   // of the run, once this is in
	pos    seglog.Pos
	err    error         // why it is not durable
	done   chan struct{} // closed when it is durable or failed; pos and err are then final
}

// committed is called by the log's committer, in the order of the log.
func (o *op) committed(pos seglog.Pos, err error) {
	r := o.run
	o.pos, o.err = pos, err
	r.dmu.Lock()
	switch {
	case err != nil && o.kind == kindVerdict:
		r.owed = append(r.owed, o)
	case err != nil:
	case o.kind == kindVerdict:
		o.store.checkpoints.verdicts.add(o)
	default:
		if o.kind == kindStarted {
			r.first = pos
		}
		r.durable, r.dirty = o.after, true
		r.ready = append(r.ready, o)
	}
	r.dmu.Unlock()
	if err == nil {
		o.store.checkpoints.lastDone.Store(uint64(pos))
	} else {
		o.store.failed(err)
	}
	close(o.done)
	if o.kind == kindVerdict {
		r.unpin()
	}
}

// change pins a run, brings in what the index knows, and calls f with the run's mu held and live in order. F queues what it
// wants changed, and change waits until that is durable and in the run's file.
func (s *Disk) change(ctx context.Context, run string, f func(*run) (*op, error)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	r := s.runs.pin(s.runs.key(run))
	defer r.unpin()
	for {
		if err := s.Health(); err != nil {
			return err
		}
		o, last, err := s.attempt(ctx, r, f)
		switch {
		case errors.Is(err, seglog.ErrEpoch): // appends failed meanwhile
		case errors.Is(err, errUnsettled):
			if err := last.wait(ctx); err != nil {
				return err
			}
		case err != nil || o == nil:
			return err
		default:
			return s.finish(ctx, o)
		}
	}
}

func (s *Disk) attempt(ctx context.Context, r *run, f func(*run) (*op, error)) (o, last *op, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.runs.load(ctx, r); err != nil {
		return nil, nil, err
	}
	s.begin(r)
	if o, err = f(r); err == nil && o != nil {
		err = s.queue(ctx, o)
	}
	return o, r.last, err
}

// begin goes back to what is durable where appends failed since the run's last one. The run's mu is held.
func (s *Disk) begin(r *run) {
	e := s.log.Epoch()
	if r.epoch == e {
		return
	}
	if r.verdict != nil {
		<-r.verdict.done // it failed, or is about to
	}
	r.dmu.Lock()
	r.live = r.durable
	r.dmu.Unlock()
	r.epoch = e
}

// errUnsettled says that the answer depends on an op that is neither durable nor failed.
var errUnsettled = errors.New("an append is under way")

// unsettled reports whether live is not durable, so that what it says of the run may turn out untrue.
func (r *run) unsettled() bool {
	durable, _ := r.settled()
	return r.live.exists() != durable.exists() || r.live.status != durable.status
}

// wait waits until the log has decided. It does not say how.
func (o *op) wait(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// queue hands an op to the log. The run's mu is held.
func (s *Disk) queue(ctx context.Context, o *op) error {
	r := o.run
	if err := s.pay(ctx, r); err != nil {
		return err
	}
	if err := s.log.Append(ctx, r.epoch, *o.buffer, o.committed); err != nil { // it copies
		return s.failed(err)
	}
	r.live, r.last = o.after, o
	return nil
}

// queueVerdict is queue for a verdict, which keeps the run pinned until the log has decided. The run's mu is held.
func (s *Disk) queueVerdict(ctx context.Context, o *op) error {
	o.run.pin()
	if err := s.log.Append(ctx, o.run.epoch, o.record, o.committed); err != nil {
		o.run.unpin()
		return s.failed(err)
	}
	o.run.verdict = o
	return nil
}

// pay queues the verdicts that failed, before anything that follows them. The run's mu is held.
func (s *Disk) pay(ctx context.Context, r *run) error {
	r.dmu.Lock()
	owed := r.owed
	r.owed = nil
	r.dmu.Unlock()
	for i, o := range owed {
		again := &op{store: s, run: r, kind: o.kind, record: o.record, done: make(chan struct{})}
		if err := s.queueVerdict(ctx, again); err != nil {
			r.dmu.Lock()
			r.owed = append(slices.Clone(owed[i:]), r.owed...)
			r.dmu.Unlock()
			return err
		}
	}
	return nil
}

// op makes one of lines that follow what is live; head is where they begin in what the buffer holds.
func (s *Disk) op(r *run, kind byte, buffer *[]byte, head int, after state) *op {
	return &op{store: s, run: r, kind: kind, buffer: buffer, data: (*buffer)[head:], after: after, done: make(chan struct{})}
}

// buffers hold entries from when they are made until they are in the run's file.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBuffer is how long a buffer may be that is kept for the next op.
const maxBuffer = 64 << 10

// head begins the buffer of an entry that follows what is live.
func (r *run) head(kind byte, id runtrace.ID, added int) *[]byte {
	e := entry{kind: kind, id: id, offset: r.live.bytes, crc: r.live.crc, turns: r.live.turns, added: added}
	b := buffers.Get().(*[]byte)
	*b = e.appendHead((*b)[:0])
	return b
}

// giveBack gives the buffer of an op back whose lines are in the file, or that was never queued.
func giveBack(b *[]byte) {
	if b != nil && cap(*b) <= maxBuffer {
		buffers.Put(b)
	}
}

// finish waits until an op is durable and in the run's file. When ctx ends first, somebody else does.
func (s *Disk) finish(ctx context.Context, o *op) error {
	select {
	case <-o.done:
		err := s.apply(o)
		if err == nil {
			giveBack(o.buffer) // whoever follows the run has copies
			o.buffer, o.data = nil, nil
		}
		return err
	case <-ctx.Done():
		s.abandon(o)
		return ctx.Err()
	}
}

// apply brings a durable op into the run's file.
func (s *Disk) apply(o *op) error {
	if o.err != nil {
		return o.err
	}
	if err := s.files.write(o.run); err != nil {
		return fmt.Errorf("the log has it, the run's file has not: %w", err)
	}
	return nil
}

// abandon finishes an op whose caller goes, and has the run pinned still.
func (s *Disk) abandon(o *op) {
	o.run.pin()
	s.work.Add(1)
	go func() { // ends with the op; Close waits for it
		defer s.work.Done()
		defer o.run.unpin()
		<-o.done
		if err := s.apply(o); err != nil {
			s.o.Logger.Warn("an append without its caller failed", "run", o.after.head.id.String(), "error", err)
		}
	}()
}

// Start is that of Store.
func (s *Disk) Start(ctx context.Context, started *runtrace.Started) (existing bool, err error) {
	id := started.ID()
	if err := id.Check(); err != nil {
		return false, err
	}
	st := *started
	st.StartedAt = cmp.Or(st.StartedAt, runtrace.Time(time.Now()))
	err = s.change(ctx, id.Run, func(r *run) (*op, error) {
		existing = false
		switch {
		case r.unsettled():
			return nil, errUnsettled
		case r.live.of(id):
			existing = true
			return nil, nil
		case r.live.exists():
			return nil, ErrOther
		}
		b := r.head(kindStarted, id, 0)
		head := len(*b)
		if *b, err = st.AppendLine(*b); err != nil {
			return nil, err
		}
		return s.op(r, kindStarted, b, head, begun(&st, (*b)[head:])), nil
	})
	if err == nil && !existing {
		s.stats.started.Add(1)
	}
	return existing, err
}

// Append is that of Store.
func (s *Disk) Append(ctx context.Context, id runtrace.ID, turns []runtrace.Turn) (base int, err error) {
	err = s.change(ctx, id.Run, func(r *run) (*op, error) {
		switch {
		case r.unsettled():
			return nil, errUnsettled
		case !r.live.of(id):
			return nil, &Dropped{RunNotFound}
		case !r.live.open():
			return nil, &Dropped{RunTerminal}
		case r.live.turns+len(turns) > runtrace.MaxTurns:
			return nil, &Dropped{RunTurnLimit}
		case len(turns) == 0:
			base = r.live.turns
			return nil, nil
		}
		if err := s.caughtUp(r); err != nil {
			return nil, err
		}
		base = r.live.turns
		return s.turns(r, id, turns)
	})
	if err != nil {
		return 0, err
	}
	s.stats.turns.Add(int64(len(turns)))
	return base, nil
}

// turns encodes turns that follow what is live.
func (s *Disk) turns(r *run, id runtrace.ID, turns []runtrace.Turn) (*op, error) {
	b := r.head(kindTurns, id, len(turns))
	head := len(*b)
	for i := range turns {
		t := turns[i]
		t.Index = r.live.turns + i
		var err error
		if *b, err = t.AppendLine(*b); err != nil {
			return nil, dropTooLarge(err)
		}
	}
	if len(*b) > seglog.MaxRecord {
		return nil, &Dropped{TurnTooLarge}
	}
	return s.op(r, kindTurns, b, head, r.live.grown((*b)[head:], len(turns))), nil
}

// End is that of Store.
func (s *Disk) End(ctx context.Context, id runtrace.ID, e *runtrace.Ended) error {
	ended := *e
	ended.RunID, ended.AgentID = id.Run, id.Agent
	ended.Status = cmp.Or(ended.Status, runtrace.Completed)
	ended.EndedAt = cmp.Or(ended.EndedAt, runtrace.Time(time.Now()))
	err := s.change(ctx, id.Run, func(r *run) (*op, error) {
		switch {
		case r.unsettled():
			return nil, errUnsettled
		case !r.live.of(id):
			return nil, ErrNotFound
		case !r.live.open():
			return nil, ErrEnded
		}
		if err := s.caughtUp(r); err != nil {
			return nil, err
		}
		b := r.head(kindEnded, id, 0)
		head := len(*b)
		var err error
		if *b, err = ended.AppendLine(*b); err != nil {
			return nil, err
		}
		return s.op(r, kindEnded, b, head, r.live.ended(&ended, (*b)[head:])), nil
	})
	if err == nil {
		s.stats.ended.Add(1)
	}
	return err
}

// caughtUp sees to it that nothing is queued behind lines that could not be written. The run's mu is held.
func (s *Disk) caughtUp(r *run) error {
	if !r.behind.Load() {
		return nil
	}
	if err := s.files.write(r); err != nil {
		return fmt.Errorf("earlier turns cannot be written to the run's file: %w", err)
	}
	return nil
}

// Verdict is that of Store.
func (s *Disk) Verdict(ctx context.Context, id runtrace.ID, verdict json.RawMessage) error {
	if err := checkVerdict(verdict); err != nil {
		return err
	}
	if err := s.relieve(ctx); err != nil {
		return err
	}
	e := entry{kind: kindVerdict, id: id}
	record := append(e.appendHead(make([]byte, 0, 16+len(id.Agent)+len(id.Run)+len(verdict))), verdict...)
	return s.change(ctx, id.Run, func(r *run) (*op, error) {
		switch {
		case id == (runtrace.ID{}):
		case r.unsettled():
			return nil, errUnsettled
		case !r.live.of(id):
			return nil, ErrNotFound
		}
		if err := s.pay(ctx, r); err != nil {
			return nil, err
		}
		return nil, s.queueVerdict(ctx, &op{store: s, run: r, kind: kindVerdict, record: record, done: make(chan struct{})})
	})
}

// relieve lets whoever makes more verdicts than the index takes wait for it.
func (s *Disk) relieve(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if !s.checkpoints.verdicts.tooMany() {
		return nil
	}
	return s.checkpoints.write(ctx, false)
}

func checkVerdict(verdict json.RawMessage) error {
	if len(verdict) > runtrace.MaxLine {
		return &runtrace.TooLargeError{Record: "verdict", Size: len(verdict)}
	}
	if !json.Valid(verdict) {
		return &runtrace.InvalidError{Key: "verdict", Cause: errors.New("not one JSON value")}
	}
	return nil
}

// dropTooLarge makes of a line that is too long what Append says of it.
func dropTooLarge(err error) error {
	var large *runtrace.TooLargeError
	if errors.As(err, &large) {
		return &Dropped{TurnTooLarge}
	}
	return err
}
