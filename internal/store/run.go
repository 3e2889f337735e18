package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// A run is what the store holds in memory of a run: of each that is open, of those that ended and are not in the index yet, and
// of those that somebody looks at. Turns are not among it.
//
// Its three locks are taken in this order: mu, files, dmu. The committer takes dmu alone.
type run struct {
	key   string
	shard *shard
	refs  int // guarded by shard.mu

	mu      sync.Mutex // the order of appends
	epoch   seglog.Epoch
	live    state // after everything that was queued: the next append builds on it
	last    *op   // that was queued last, of those that change the state
	verdict *op   // that was queued last, of verdicts

	loaded atomic.Bool // what the index knows stands below
	behind atomic.Bool // todo is not empty

	files sync.Mutex // the file and who follows it
	file  state      // what the file holds
	todo  []*op      // durable, and could not be written yet
	feed  feed
	check *span     // while the store is opened: what of the file has to be looked at
	cache *openFile // guarded by the cache of files

	dmu     sync.Mutex // what the committer changes
	durable state
	first   seglog.Pos // where the run begins in the log
	ready   []*op      // durable, in order, not taken for writing yet
	owed    []*op      // verdicts that failed with their block
	dirty   bool       // the index has an older state
}

// settled is the run as it is in the log.
func (r *run) settled() (state, seglog.Pos) {
	r.dmu.Lock()
	defer r.dmu.Unlock()
	return r.durable, r.first
}

// idle reports whether nothing but the index needs to know of it. Its shard is locked, so that nobody comes to it meanwhile.
func (r *run) idle() bool {
	if r.refs > 0 || !r.files.TryLock() {
		return false
	}
	defer r.files.Unlock()
	r.dmu.Lock()
	defer r.dmu.Unlock()
	return !r.dirty && !r.durable.open() && r.check == nil && len(r.ready)+len(r.todo)+len(r.owed) == 0
}

// A table holds the runs by their keys.
type table struct {
	seed   maphash.Seed
	shards [64]shard
}

type shard struct {
	mu   sync.Mutex
	runs map[string]*run
}

func newTable() *table {
	t := &table{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].runs = map[string]*run{}
	}
	return t
}

// pin returns the run with a key, which is made if need be and stays until unpin.
func (t *table) pin(key string) *run {
	s := &t.shards[maphash.String(t.seed, key)%uint64(len(t.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[key]
	if r == nil {
		r = &run{key: key, shard: s}
		s.runs[key] = r
	}
	r.refs++
	return r
}

// pin keeps a run that is pinned already pinned for one more.
func (r *run) pin() {
	r.shard.mu.Lock()
	r.refs++
	r.shard.mu.Unlock()
}

// unpin lets a run go; one that does not exist or is in the index as it is leaves the table.
func (r *run) unpin() {
	r.shard.mu.Lock()
	defer r.shard.mu.Unlock()
	r.refs--
	r.leave()
}

// leave takes a run out of the table when it is idle. Its shard is locked.
func (r *run) leave() {
	if r.idle() {
		delete(r.shard.runs, r.key)
	}
}

// each calls f for every run of now, pinned.
func (t *table) each(f func(*run)) {
	var runs []*run
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, r := range s.runs {
			r.refs++
			runs = append(runs, r)
		}
		s.mu.Unlock()
		for _, r := range runs {
			f(r)
			r.unpin()
		}
		runs = runs[:0]
	}
}

// runs are the runs of a store: those in memory, and behind them those that the index knows.
type runs struct {
	*table
	index *index
	folds bool // the file system takes A and a for the same name
}

// load brings in what the index knows, once. The run's mu is held.
func (s *runs) load(ctx context.Context, r *run) error {
	if r.loaded.Load() {
		return nil
	}
	st, first, err := s.index.get(ctx, r.key)
	if err != nil {
		return err
	}
	r.files.Lock()
	r.file = st
	r.files.Unlock()
	r.dmu.Lock()
	r.durable, r.first = st, first
	r.dmu.Unlock()
	r.live = st
	r.loaded.Store(true)
	return nil
}

// look returns a run for reading, pinned. It waits for no append.
func (s *runs) look(ctx context.Context, name string) (*run, error) {
	r := s.pin(s.key(name))
	if r.loaded.Load() {
		return r, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.load(ctx, r); err != nil {
		r.unpin()
		return nil, err
	}
	return r, nil
}

// A state is a run after some of its entries. The zero state is a run that does not exist.
type state struct {
	head    *head // nil: no run
	status  runtrace.Status
	turns   int
	bytes   int64  // of its lines
	crc     uint32 // CRC-32C of them
	endedAt string
}

// A head is what stays as it was at a run's start.
type head struct {
	id        runtrace.ID
	intent    string
	startedAt string
}

func (s *state) exists() bool { return s.head != nil }
func (s *state) open() bool   { return s.head != nil && s.status == runtrace.InProgress }

// records counts its lines.
func (s *state) records() int {
	switch {
	case !s.exists():
		return 0
	case s.open():
		return 1 + s.turns
	}
	return 2 + s.turns
}

// of reports whether it is this run.
func (s *state) of(id runtrace.ID) bool { return s.head != nil && s.head.id == id }

func (s *state) summary() Summary {
	return Summary{ID: s.head.id, Intent: s.head.intent, StartedAt: s.head.startedAt, EndedAt: s.endedAt,
		Status: s.status, Turns: s.turns}
}

// grown is the state with more lines.
func (s state) grown(lines []byte, turns int) state {
	s.bytes += int64(len(lines))
	s.crc = crc32.Update(s.crc, castagnoli, lines)
	s.turns += turns
	return s
}

// begun is the state of a run that has its first line.
func begun(s *runtrace.Started, line []byte) state {
	h := &head{id: s.ID(), intent: runtrace.Truncate(s.Intent), startedAt: s.StartedAt}
	return state{head: h, status: runtrace.InProgress}.grown(line, 0)
}

// ended is the state of a run that has its last line.
func (s state) ended(e *runtrace.Ended, line []byte) state {
	s.status, s.endedAt = e.Status, e.EndedAt
	return s.grown(line, 0)
}

// A crcWriter adds what is written to a checksum.
type crcWriter struct{ crc uint32 }

func (w *crcWriter) Write(b []byte) (int, error) {
	w.crc = crc32.Update(w.crc, castagnoli, b)
	return len(b), nil
}

// An entry is one record of the log:
//
//	kind, a byte: S started, T turns, E ended, V verdict
//	agent, run    each its length (uvarint) and its bytes
//	but for V: offset (uvarint) in the run's file at which the lines stand; CRC-32C (four bytes, little endian) of what stands
//	before them; turns before them (uvarint); turns among them (uvarint)
//	the lines, each with its newline; of V the verdict
//
// Offset and CRC make each entry say where it belongs: a file is checked up to any entry, and an entry that was taken in already
// is known by its offset.
type entry struct {
	kind   byte
	id     runtrace.ID
	offset int64
	crc    uint32
	turns  int // before
	added  int
	data   []byte
}

const (
	kindStarted = 'S'
	kindTurns   = 'T'
	kindEnded   = 'E'
	kindVerdict = 'V'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendHead appends all but the data.
func (e *entry) appendHead(dst []byte) []byte {
	dst = append(dst, e.kind)
	for _, s := range []string{e.id.Agent, e.id.Run} {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	if e.kind == kindVerdict {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(e.offset))
	dst = binary.LittleEndian.AppendUint32(dst, e.crc)
	dst = binary.AppendUvarint(dst, uint64(e.turns))
	return binary.AppendUvarint(dst, uint64(e.added))
}

var errEntry = errors.New("not an entry of this version")

// parseEntry reads an entry, whose data shares b's memory.
func parseEntry(b []byte) (entry, error) {
	r := entryReader{b: b}
	e := entry{kind: r.byte()}
	e.id.Agent, e.id.Run = r.text(), r.text()
	switch e.kind {
	case kindStarted, kindTurns, kindEnded:
		e.offset = int64(r.number())
		e.crc = r.uint32()
		e.turns, e.added = int(r.number()), int(r.number())
	case kindVerdict:
	default:
		return e, fmt.Errorf("%w: kind %q", errEntry, e.kind)
	}
	if r.bad || e.offset < 0 || e.turns < 0 || e.added < 0 {
		return e, fmt.Errorf("%w: it ends too early or holds a number that is too large", errEntry)
	}
	e.data = r.b
	if e.id == (runtrace.ID{}) && e.kind == kindVerdict {
		return e, nil
	}
	return e, e.id.Check() // it becomes a path
}

// An entryReader takes an entry apart; what is missing is zero and bad.
type entryReader struct {
	b   []byte
	bad bool
}

func (r *entryReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *entryReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *entryReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *entryReader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > 1<<62 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *entryReader) text() string { return string(r.take(r.number())) }

// takeDirty returns the runs of which the index has an older state, pinned, and their rows.
func (s *runs) takeDirty() (rows []row, runs []*run) {
	s.each(func(r *run) {
		r.dmu.Lock()
		dirty := r.dirty
		if dirty {
			r.dirty = false
			rows = append(rows, row{r.key, r.durable, r.first})
		}
		r.dmu.Unlock()
		if dirty {
			r.pin()
			runs = append(runs, r)
		}
	})
	return rows, runs
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

// key is what a run goes by: its id, which no two agents share, nor two files.
func (s *runs) key(run string) string {
	if s.folds {
		return strings.ToLower(run)
	}
	return run
}
