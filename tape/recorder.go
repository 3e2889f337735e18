package tape

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// RecorderOptions say how a Recorder stamps and keeps. Nil and zero work.
type RecorderOptions struct {
	// Store takes payloads that do not fit into a record; a memory store when nil.
	Store cas.Store
	// Now is the clock, in ms: the run's own (Unix epoch) and a monotonic one from the recording's beginning. The default
	// reads the wall clock, and the time since NewRecorder.
	Now func() (wallMS, monotonicMS int64)
	// Sync is called by Flush once the tape has been handed to the kernel: the fsync of its file, where every barrier must
	// outlive a loss of power. Nil is none.
	Sync func() error
}

// A Recorder appends to a tape for any number of goroutines. A nil *Recorder records nothing and costs nothing, so that
// hooks need no condition around them.
type Recorder struct {
	store cas.Store
	now   func() (wallMS, monotonicMS int64)
	sync  func() error
	g     atomic.Uint64

	mu    sync.Mutex
	w     *Writer
	seq   uint64 // of the next record
	phase Phase
	err   error // the first failure; what follows it is not recorded
}

// NewRecorder returns a recorder that appends to w, which is its own from now on.
func NewRecorder(w *Writer, o *RecorderOptions) *Recorder {
	r := &Recorder{w: w}
	if o != nil {
		r.store, r.now, r.sync = o.Store, o.Now, o.Sync
	}
	if r.store == nil {
		r.store = cas.NewMemory()
	}
	if r.now == nil {
		begun := time.Now()
		r.now = func() (int64, int64) {
			t := time.Now()
			return t.UnixMilli(), t.Sub(begun).Milliseconds()
		}
	}
	return r
}

// Enabled reports whether anything is recorded: what costs to build need not be built otherwise.
func (r *Recorder) Enabled() bool { return r != nil }

// Record appends k with the next seq, ordinal and the time. Order on the tape is the order of the calls. The error is the
// recorder's first one: a tape with a gap would be worse than one that ends.
func (r *Recorder) Record(k Kind) error { return r.RecordRaw(k, nil) }

// RecordRaw is Record for a kind with strings that are not UTF-8.
func (r *Recorder) RecordRaw(k Kind, raw []RawBytes) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	wall, mono := r.now()
	rec := Record{Seq: r.seq, Phase: r.phase, VirtualTimeMS: wall, MonotonicMS: mono, Kind: k, G: r.g.Add(1), Raw: raw}
	if r.err = r.w.Append(&rec); r.err == nil {
		r.seq++
	}
	return r.err
}

// Payload returns the payload of b, which is in the store before the call returns.
func (r *Recorder) Payload(b []byte) (*Payload, error) {
	if r == nil {
		return nil, nil
	}
	return MakePayload(r.store, b)
}

// Store returns the store of payloads, nil of a nil recorder.
func (r *Recorder) Store() cas.Store {
	if r == nil {
		return nil
	}
	return r.store
}

// Ordinal takes the next global ordinal, for something that stands elsewhere than on the tape: a chunk, a frame.
func (r *Recorder) Ordinal() uint64 {
	if r == nil {
		return 0
	}
	return r.g.Add(1)
}

// SetPhase says whose doing the records from now on are.
func (r *Recorder) SetPhase(p Phase) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = p
}

// Flush is the barrier: what was recorded before it is in the kernel's hands when it returns, with RecorderOptions.Sync on
// the disk.
func (r *Recorder) Flush() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.w.Flush()
	}
	if r.err == nil && r.sync != nil {
		r.err = r.sync()
	}
	return r.err
}

// Count returns the number of records so far.
func (r *Recorder) Count() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return int(r.seq)
}

// Err returns what the recorder failed with, nil while it works.
func (r *Recorder) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
