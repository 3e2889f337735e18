package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// Find is that of Store.
func (s *Disk) Find(ctx context.Context, name string) (Summary, error) {
	if err := s.enter(ctx); err != nil {
		return Summary{}, err
	}
	defer s.leave()
	r, err := s.look(ctx, name)
	if err != nil {
		return Summary{}, err
	}
	defer r.unpin()
	st, _ := r.settled()
	if !st.exists() || st.head.id.Run != name {
		return Summary{}, ErrNotFound
	}
	return st.summary(), nil
}

// List is that of Store.
func (s *Disk) List(ctx context.Context, agent string) ([]Summary, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	known, live := s.inMemory(agent)
	all := make([]Summary, 0, len(live))
	err := s.index.list(ctx, agent, func(r row) error {
		if known[r.key] {
			return nil
		}
		for len(live) > 0 && live[0].first > r.first {
			all = append(all, live[0].state.summary())
			live = live[1:]
		}
		all = append(all, r.state.summary())
		return nil
	})
	for _, r := range live {
		all = append(all, r.state.summary())
	}
	return all, err
}

// inMemory gives an agent's runs that are in the table, the last started first, and their keys. What leaves the table meanwhile is
// in the index.
func (s *Disk) inMemory(agent string) (known map[string]bool, rows []row) {
	known = map[string]bool{}
	s.table.each(func(r *run) {
		st, first := r.settled()
		if !st.exists() || agent != "" && st.head.id.Agent != agent {
			return
		}
		known[r.key] = true
		rows = append(rows, row{r.key, st, first})
	})
	slices.SortFunc(rows, func(a, b row) int { return -compare(a.first, b.first) })
	return known, rows
}

func compare(a, b seglog.Pos) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Verdicts is that of Store.
func (s *Disk) Verdicts(ctx context.Context, id runtrace.ID) ([]json.RawMessage, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	r, err := s.look(ctx, id.Run)
	if err != nil {
		return nil, err
	}
	defer r.unpin()
	if st, _ := r.settled(); id != (runtrace.ID{}) && !st.of(id) {
		return nil, ErrNotFound
	}
	r.mu.Lock()
	last := r.verdict
	r.mu.Unlock()
	if last != nil {
		if err := last.wait(ctx); err != nil {
			return nil, err
		}
	}
	return s.allVerdicts(ctx, id)
}

// allVerdicts are those of the index and those that it does not have yet.
func (s *Disk) allVerdicts(ctx context.Context, id runtrace.ID) (all []json.RawMessage, err error) {
	pending := s.verdicts.snapshot() // first: what is saved meanwhile is in the index then
	upto := seglog.Pos(0)
	err = s.index.verdicts(ctx, id, func(v verdictRow) {
		all = append(all, json.RawMessage(v.verdict))
		upto = v.pos
	})
	for _, v := range pending {
		if v.id == id && v.pos > upto {
			all = append(all, json.RawMessage(v.verdict))
		}
	}
	return all, err
}

// Trace is that of Store.
func (s *Disk) Trace(ctx context.Context, id runtrace.ID, o *TraceOptions) (*Trace, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	r, err := s.known(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.unpin()
	want := TraceOptions{}
	if o != nil {
		want = *o
	}
	t, _, err := s.records(ctx, r, want, func() {})
	return t, err
}

// known returns a run that exists and is this one, pinned.
func (s *Disk) known(ctx context.Context, id runtrace.ID) (*run, error) {
	r, err := s.look(ctx, id.Run)
	if err != nil {
		return nil, err
	}
	if st, _ := r.settled(); !st.of(id) {
		r.unpin()
		return nil, ErrNotFound
	}
	return r, nil
}

// records reads the run's file, which is written again from the log where it is not what it should be. With the state of the
// file that is read settled, and before anything is added to it, it calls then.
func (s *Disk) records(ctx context.Context, r *run, o TraceOptions, then func()) (*Trace, state, error) {
	st, err := s.atRest(ctx, r, false, then)
	if err != nil {
		return nil, st, err
	}
	t, err := s.readFile(st, o)
	if errors.Is(err, errFile) {
		if _, err := s.atRest(ctx, r, true, func() {}); err != nil {
			return nil, st, err
		}
		t, err = s.readFile(st, o)
	}
	return t, st, err
}

// atRest brings the run's file up to date and returns what it holds. A file whose length is wrong is written again, and with
// again any.
func (s *Disk) atRest(ctx context.Context, r *run, again bool, then func()) (state, error) {
	r.files.Lock()
	defer r.files.Unlock()
	err := s.writeLocked(r)
	if !r.file.exists() {
		return state{}, fmt.Errorf("the run's file could not be begun: %w", err)
	}
	info, statErr := s.fs.Stat(s.path(r.file.head.id))
	switch {
	case err != nil: // it may be longer by a part of what could not be written
	case again || statErr != nil || info.Size() != r.file.bytes:
		if err := s.repair(ctx, r); err != nil {
			return state{}, err
		}
	}
	then()
	return r.file, nil
}

// errFile says that a run's file is not what the log says.
var errFile = errors.New("the run's file is not what was written")

// readFile reads the part of a trace that o asks for. The whole file is looked at, as far as st says.
func (s *Disk) readFile(st state, o TraceOptions) (*Trace, error) {
	path := s.path(st.head.id)
	f, err := s.fs.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFile, err)
	}
	defer f.Close()
	t := &Trace{ID: st.head.id, Status: st.status, From: min(max(o.From, 0), st.records())}
	c := collector{from: t.From, max: o.MaxBytes}
	crc, n, lines, err := c.read(io.NewSectionReader(f, 0, st.bytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if crc != st.crc || n != st.bytes || lines != st.records() {
		return nil, fmt.Errorf("%w: %s", errFile, path)
	}
	t.Records = c.records()
	t.Next = t.From + len(t.Records)
	t.More = t.Next < lines
	return t, nil
}

// A collector keeps the lines from one on, while they fit.
type collector struct {
	from, max int
	buf       []byte
	ends      []int
	full      bool
}

// read reads lines to the end and returns what they are.
func (c *collector) read(r io.Reader) (crc uint32, n int64, lines int, err error) {
	b := bufio.NewReaderSize(r, 64<<10)
	var long []byte // the begin of a line that is longer than b
	for {
		part, err := b.ReadSlice('\n')
		crc = crc32.Update(crc, castagnoli, part)
		n += int64(len(part))
		switch {
		case err == nil:
			if len(long) > 0 {
				part = append(long, part...)
				long = long[:0]
			}
			c.line(lines, part[:len(part)-1])
			lines++
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
		case err == io.EOF:
			return crc, n, lines, nil
		default:
			return crc, n, lines, err
		}
		if len(long) > runtrace.MaxLine {
			return crc, n, lines, nil // no line of ours
		}
	}
}

func (c *collector) line(at int, line []byte) {
	if at < c.from || c.full {
		return
	}
	if c.max > 0 && len(c.ends) > 0 && len(c.buf)+len(line) > c.max {
		c.full = true
		return
	}
	c.buf = append(c.buf, line...)
	c.ends = append(c.ends, len(c.buf))
}

func (c *collector) records() [][]byte {
	all := make([][]byte, len(c.ends))
	begin := 0
	for i, end := range c.ends {
		all[i] = c.buf[begin:end:end]
		begin = end
	}
	return all
}

// eachLine cuts whole lines, without their newlines.
func eachLine(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			line, rest, _ := bytes.Cut(b, []byte("\n"))
			if !yield(line[:len(line):len(line)]) {
				return
			}
			b = rest
		}
	}
}

// Subscribe is that of Store.
func (s *Disk) Subscribe(ctx context.Context, id runtrace.ID, o *SubscribeOptions) (*Subscription, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	r, err := s.known(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.unpin()
	sub := newSubscription(id, o)
	t, st, err := s.records(ctx, r, TraceOptions{From: 1, MaxBytes: sub.bounds.MaxSnapshot}, func() { r.follow(sub) })
	if err != nil {
		sub.Close()
		return nil, err
	}
	sub.snapshot(t, st.turns, st.status)
	return sub, nil
}

// follow adds a subscription to what the run gets from now on. The run's files lock is held.
func (r *run) follow(sub *Subscription) {
	if !r.file.open() {
		sub.finish()
		return
	}
	if r.feed == nil {
		r.feed = feed{}
	}
	r.feed[sub] = struct{}{}
	sub.leave = func() {
		r.files.Lock()
		defer r.files.Unlock()
		delete(r.feed, sub)
	}
}
