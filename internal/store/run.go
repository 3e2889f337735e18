package store

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
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
func (r *run) leave() bool {
	if !r.idle() {
		return false
	}
	delete(r.shard.runs, r.key)
	return true
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

// load brings in what the index knows, once. The run's mu is held.
func (s *Disk) load(ctx context.Context, r *run) error {
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
func (s *Disk) look(ctx context.Context, name string) (*run, error) {
	r := s.table.pin(s.key(name))
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
